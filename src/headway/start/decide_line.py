"""A launch line of the user's own becomes a decision: how many ranks, on which GPUs, in which environment."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from headway.adopt import ReadLine, is_binary
from headway.errors import UsageError
from headway.launch import Claims, ForeignLine, Job, refuse_bad_words, refuse_unknown_knobs
from headway.machine import MachineReport, count_visible, inspect_for_line
from headway.messages import say
from headway.start.decide import Decision
from headway.start.devices import choose_devices, read_gpus, wait_for_devices
from headway.start.nodes import Assembly
from headway.start.nursery import Tell

_NAME: Final = re.compile(r"[\w.+-]{1,80}")
_LOOK_S: Final = 0.2
"""How long the start of a line waits for the look at the machine, which a stuck driver can hold forever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineWish:
    """What is asked for beside the line."""

    gpus: str | None = None
    """`4` free ones, or `0,1` and UUIDs."""
    cpus: int | None = None
    when_free: int | None = None
    """Wait until that many GPUs are free."""
    restarts: int | None = None
    on_hang: Literal["wait", "restart", "stop"] = "wait"
    hang_after: float = 10.0
    grace: float = 30.0
    has_hook: bool = True
    must_train: bool = True
    out: Path = Path("runs")
    name: str | None = None
    """What the run directory is called after; none: the script."""
    oom_knob: str = ""
    """Which numbers of the line make its batch smaller when memory runs out."""
    resume_with: str = ""
    """Words that make it continue when it starts again."""
    on_nan: Literal["warn", "stop"] = "warn"
    beside: Mapping[str, Any] = field(default_factory=dict)
    """The sections `alert` and `track`, as a config would hold them. Any: plain JSON."""


def list_notes(read: ReadLine, wish: LineWish) -> list[str]:
    """Return what the user should know before the line starts."""
    if read.is_native or not wish.cpus or wish.cpus == 1:
        return list(read.notes)
    return [*read.notes, say("run/cpus-original", cpus=wish.cpus, why=read.why_original or read.launcher)]


def decide_line(
    read: ReadLine,
    wish: LineWish,
    claims: Claims,
    tell: Tell,
    *,
    base: Mapping[str, str] | None = None,
    waits: bool = True,
    nodes: Assembly | None = None,
) -> Decision:
    """Settle ranks and devices; the machine is looked at, and what is wrong with it only warned about.

    Args:
        read: the line.
        wish: what is asked for beside it.
        claims: takes the GPUs.
        tell: says who holds the GPUs that are waited for.
        base: the environment in which the line was read; none: this process's own.
        waits: wait here for GPUs; otherwise whoever supervises it does.
        nodes: the others that take part; none: this one alone.
    """
    environ = _environ(read, os.environ if base is None else base)
    if wish.name is not None and not _NAME.fullmatch(wish.name):
        raise UsageError("run/not-a-name", got=wish.name)
    if wish.oom_knob:
        refuse_unknown_knobs(wish.oom_knob, read.argv, environ)
    if wish.resume_with:
        refuse_bad_words(wish.resume_with, read.argv)
    look = _look(wish.out, read, environ)
    devices = _devices(wish, claims, environ, tell, waits=waits)
    world_size = _world_size(read, wish, devices, environ)
    line = ForeignLine(
        argv=read.argv,
        cwd=os.getcwd(),
        mode="native" if read.is_native else "original",
        launcher=read.launcher,
        is_distributed=read.is_native and (read.is_distributed or world_size > 1 or nodes is not None),
        has_macros=read.has_macros,
        spans_nodes=read.spans_nodes,
        run_id=read.run_id,
        role=read.role or "default",
        has_hook=wish.has_hook,
        must_train=wish.must_train,
        line=read.text,
        oom_knob=wish.oom_knob,
        resume_with=wish.resume_with,
        on_nan=wish.on_nan,
    )
    job = Job(
        program=line,
        world_size=world_size,
        threads=None,
        devices=devices,
        restarts=wish.restarts if wish.restarts is not None else read.restarts or 0,
        grace_s=wish.grace,
        on_hang=wish.on_hang,
        hang_s=wish.hang_after,
        environment=_changes(environ),
        env_names=tuple(read.set_names),
        beside=wish.beside,
    )
    elsewhere = 0
    if nodes is not None:
        if not read.is_native and not read.spans_nodes:
            raise UsageError("nodes/original-line", why=read.why_original or read.launcher)
        counted = read.num_ranks if isinstance(read.num_ranks, str) else None
        elsewhere = nodes.settle_line(job, wish.gpus, counted)
    machine = None
    with contextlib.suppress(Exception):  # border: too late, or it failed
        machine = look.result(_LOOK_S)
    return Decision(
        job=job,
        out=wish.out,
        name=wish.name or read.name,
        machine=machine,
        late=None if machine else look,
        elsewhere=elsewhere,
    )


def _environ(read: ReadLine, base: Mapping[str, str]) -> dict[str, str]:
    """Return all that the line's program sees."""
    return {name: value for name, value in {**base, **read.env}.items() if name not in read.unset}


def _changes(environ: Mapping[str, str]) -> dict[str, str | None]:
    """Return how an environment differs from ours."""
    gone: dict[str, str | None] = dict.fromkeys(name for name in os.environ if name not in environ)
    return gone | {name: value for name, value in environ.items() if os.environ.get(name) != value}


def wait_for_job(job: Job, number: int, claims: Claims, tell: Tell) -> Job:
    """Wait until that many GPUs are free, and return the job on them."""
    assert job.foreign is not None, "a config's GPUs are its plan's"
    devices = wait_for_devices(number, claims, tell, environ=_set_over(os.environ, job.environment))
    return replace(job, devices=devices, world_size=len(devices) if job.foreign.is_distributed else 1)


def _set_over(environ: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**environ, **changes}.items() if value is not None}


def find_interpreter(read: ReadLine, environ: Mapping[str, str]) -> str | None:
    """Return the line's own interpreter where it can be asked something without a side effect."""
    # A rank of ours is started by the line's own interpreter; what a launcher or a script starts, nobody knows. A
    # wrapper or a shim in its place must run once, as the line says, and not once more for a question of ours.
    if not read.is_native or "python" not in Path(read.argv[0]).name:
        return None
    program = shutil.which(read.argv[0], path=environ.get("PATH"))
    return program if program is not None and is_binary(Path(program)) else None


def _look(out: Path, read: ReadLine, environ: Mapping[str, str]) -> Future[MachineReport]:
    """Look at the machine beside the decision, in a thread of which nobody waits for the end."""
    python = find_interpreter(read, environ)
    found: Future[MachineReport] = Future()

    def run() -> None:
        try:
            found.set_result(inspect_for_line(out, python, environ))
        except Exception as err:  # border: a look that fails costs the line nothing
            found.set_exception(err)

    threading.Thread(target=run, name="headway-look", daemon=True).start()
    return found


def _devices(
    wish: LineWish, claims: Claims, environ: Mapping[str, str], tell: Tell, *, waits: bool
) -> tuple[str, ...] | None:
    if wish.gpus and wish.cpus:
        raise UsageError("run/gpus-or-cpus")
    if wish.cpus:
        return ()
    if wish.when_free:
        return wait_for_devices(wish.when_free, claims, tell, environ=environ) if waits else None
    return choose_devices(wish.gpus, claims, environ=environ) if wish.gpus else None


def _world_size(read: ReadLine, wish: LineWish, devices: tuple[str, ...] | None, environ: Mapping[str, str]) -> int:
    """Return the ranks to start: what was asked for here, else what the line says, by torchrun's own rules."""
    if not read.is_native:
        return 1
    if wish.cpus:
        return wish.cpus
    if devices is not None:
        # A plain `python x.py` is one process with all of them (DataParallel); torchrun starts one per GPU.
        return len(devices) if read.is_distributed else 1
    if wish.when_free:
        return wish.when_free if read.is_distributed else 1
    if isinstance(read.num_ranks, int):
        return read.num_ranks
    return 1 if read.num_ranks is None else _counted(read.num_ranks, environ)


def _counted(words: str, environ: Mapping[str, str]) -> int:
    if words.isdigit():
        return int(words)
    gpus = count_visible(read_gpus(), environ.get("CUDA_VISIBLE_DEVICES"))
    if words == "gpu" and not gpus:
        raise UsageError("run/no-gpus", words=words)
    return gpus if words in ("gpu", "auto") and gpus else len(os.sched_getaffinity(0))
