"""The faults of a rehearsal. Each is really raised, and returns what followed."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headway.launch import request_save
from headway.rehearse.record import Survival
from headway.telemetry import number, whole

if TYPE_CHECKING:  # it asks for the faults
    from headway.rehearse.run import Rehearsed

_CALM_S: Final = 1.0
"""How long a fault that must change nothing is watched."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class NotPossible(Exception):  # noqa: N818 - not a fault, a remark
    """The fault cannot be raised here."""

    def __init__(self, code: str, **facts: object) -> None:
        super().__init__(code)
        self.code, self.facts = code, facts


def kill_rank(run: Rehearsed) -> Survival:
    """Kill a rank as the kernel does."""
    beats = run.wait_training()
    return _restarted(run, "kill", lambda: os.kill(random.choice(beats).pid, signal.SIGKILL))


def stop_rank(run: Rehearsed) -> Survival:
    """Stop a rank, so that it neither works nor ends."""
    beats = run.wait_training()
    for _ in range(5):  # its pace must be known before a silence means anything
        beats = _after_a_step(run)
    return _restarted(run, "stop", lambda: os.kill(random.choice(beats).pid, signal.SIGSTOP), kind="hang")


def take_port(run: Rehearsed) -> Survival:
    """Talk nonsense to the port where the ranks meet, and hold it."""
    beats = run.wait_training()
    if len(beats) < 2:
        raise NotPossible("rehearse/one-rank")
    port = whole(run.events("attempt_started")[-1].get("port")) or 0
    before = run.attempt()
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0) as link:
        link.sendall(random.randbytes(512))
        time.sleep(_CALM_S)
    return _unmoved(run, "port", before)


def fill_disk(run: Rehearsed) -> Survival:
    """Let a checkpoint meet a full disk, then make room."""
    beats = run.wait_training()
    before, began = run.attempt(), time.time()
    _save(run)
    with run.disk.full(beats[0].pid):
        request_save(run.run)
        run.wait(lambda: _since(run, began, "checkpoint_failed", "save_lost"))
        detect_s = _since(run, began, "checkpoint_failed", "save_lost") - began
    freed = time.time()
    _save(run)
    found = _unmoved(run, "disk", before)
    code = "rehearse/disk-real" if run.disk.is_real else "rehearse/disk-limit"
    return Survival(
        fault="disk",
        state=found.state,
        detect_s=max(0.0, detect_s),
        recover_s=time.time() - freed,
        redone=found.redone,
        code=code,
    )


def use_up_memory(run: Rehearsed) -> Survival:
    """Take the addresses that a rank's next micro-batch needs."""
    if not run.is_toy:
        raise NotPossible("rehearse/own-task")
    beats = run.wait_training()
    pid = beats[-1].pid
    seen = []
    for _ in range(40):
        seen.append(_address_bytes(pid))
        time.sleep(0.005)
    least = min(seen)
    before = resource.prlimit(pid, resource.RLIMIT_AS)
    found = _restarted(
        run, "memory", lambda: resource.prlimit(pid, resource.RLIMIT_AS, (least + (64 << 20), before[1]))
    )
    reduced = [one for one in run.events("warning") if one.get("code") == "launch/batch-reduced"]
    if not reduced:
        return found
    facts = reduced[-1].get("facts") or {}
    return Survival(
        fault="memory",
        state=found.state,
        detect_s=found.detect_s,
        recover_s=found.recover_s,
        redone=found.redone,
        code="rehearse/batch-reduced",
        facts={name: facts.get(name, "n/a") for name in ("before", "after", "batch")},
    )


def close_terminal(run: Rehearsed) -> Survival:
    """Close the terminal in which the run was started."""
    run.wait_training()
    before, began = run.attempt(), time.time()
    run.close_terminal()
    run.wait(lambda: _since(run, began, "warning", code="launch/terminal-closed"))
    found = _unmoved(run, "terminal", before)
    detect_s = _since(run, began, "warning", code="launch/terminal-closed") - began
    return Survival(fault="terminal", state=found.state, detect_s=max(0.0, detect_s), redone=found.redone)


def flip_bit(run: Rehearsed) -> Survival:
    """Change a bit of the newest checkpoint, lose the supervisor with all ranks, and resume."""
    run.wait_training()
    _save(run)
    _after_a_step(run)
    _save(run)
    files = sorted(run.run.checkpoints.glob("step-*/rank-*.safetensors"))
    _flip(files[-1])
    lost_at = max(beat.step for beat in run.wait_training())
    before, began = run.attempt(), time.time()
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    run.resume()
    run.wait_training(after=before)
    recovered = time.time()
    skipped = _since(run, began, "checkpoint_skipped")
    begun = run.events("training_started")[-1]
    return Survival(
        fault="flip",
        state="survived" if skipped else "failed",
        detect_s=skipped - began if skipped else None,
        recover_s=recovered - began,
        redone=max(0, lost_at - (whole(begun.get("step")) or 0)),
        code="rehearse/older-checkpoint" if skipped else "rehearse/flip-missed",
        facts={"step": whole(begun.get("step")) or 0},
    )


FAULTS: Final[Mapping[str, Callable[[Rehearsed], Survival]]] = {
    "kill": kill_rank,
    "stop": stop_rank,
    "port": take_port,
    "disk": fill_disk,
    "memory": use_up_memory,
    "terminal": close_terminal,
    "flip": flip_bit,
}
"""In the order in which they are raised: the last one costs the terminal and the supervisor."""


def _restarted(run: Rehearsed, name: str, strike: Callable[[], Any], *, kind: str = "rank_exited") -> Survival:
    """Raise a fault that ends the attempt; measure until the supervisor knows and until the ranks train again."""
    before, began = run.attempt(), time.time()
    strike()
    run.wait_training(after=before)
    recovered = time.time()
    # The history is written while new ranks start; when the supervisor knew is in the line itself.
    known = [
        number(event.get("seen")) if kind == "rank_exited" else number(event.get("t"))
        for event in run.events(kind)
        if event.get("attempt") == before
    ]
    known = [at for at in known if at == at and at >= began - 1]
    begun = run.events("training_started")[-1]
    return Survival(
        fault=name,
        state="survived",
        detect_s=max(0.0, min(known) - began) if known else None,
        recover_s=recovered - began,
        redone=whole(begun.get("redone")),
    )


def _unmoved(run: Rehearsed, name: str, attempt: int) -> Survival:
    """Return what followed a fault that must not end the attempt."""
    _after_a_step(run)
    is_same = run.attempt() == attempt
    redone = 0 if is_same else whole(run.events("training_started")[-1].get("redone"))
    return Survival(fault=name, state="survived", redone=redone)


def _after_a_step(run: Rehearsed) -> list[Any]:
    """Wait until the ranks have taken another step. Any: heartbeats."""
    step = max((beat.step for beat in run.wait_training()), default=0)
    run.wait(lambda: (beats := run.beats()) and min(beat.step for beat in beats) > step)
    return run.beats() or run.wait_training()


def _save(run: Rehearsed) -> None:
    """Wait for a checkpoint that is asked for now."""
    began = time.time()
    request_save(run.run)
    run.wait(lambda: _since(run, began, "checkpoint_committed"))


def _since(run: Rehearsed, began: float, *kinds: str, code: str | None = None) -> float:
    """Return when the first event of these kinds came, by unix time; 0: none has."""
    times = [
        number(event.get("t"))
        for kind in kinds
        for event in run.events(kind)
        if number(event.get("t")) >= began and (code is None or event.get("code") == code)
    ]
    return min(times, default=0.0)


def _address_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0]) * _PAGE


def _flip(path: Path) -> None:
    with path.open("r+b") as file:
        at = path.stat().st_size - 64
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 4]))
