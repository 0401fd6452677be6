"""The run that a rehearsal does things to: a real `headway train` on a terminal of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from headway.checkpoint import find_resumable
from headway.errors import TrainError
from headway.process import descendants
from headway.rehearse.faults import FAULTS, NotPossible
from headway.rehearse.record import Rehearsal, Storage, Survival
from headway.rehearse.small_disk import SmallDisk
from headway.task.order import Order, expected_ledger
from headway.telemetry import Beat, Event, RunDir, read_beat, read_events, read_record, section, whole

_START_S: Final = 180.0
_WAIT_S: Final = 60.0
_STOP_S: Final = 60.0
_TOY: Final = Path(__file__).parent / "toy"
_IN_STEP: Final = ("data", "forward", "backward", "optimizer", "save", "eval")
_SCREEN_BYTES: Final = 1 << 20


class Rehearsed:
    """One run, and what can be seen of it."""

    def __init__(self, place: Path, words: Sequence[str], disk: SmallDisk, *, is_toy: bool) -> None:
        self.place, self.disk, self.is_toy = place, disk, is_toy
        self.out = disk.folder / "runs"
        self._screen = bytearray()
        self._is_hung_up = threading.Event()
        self.process = self._start(["train", *words, f"out={self.out}"], on_terminal=True)

    @property
    def run(self) -> RunDir:
        """The run's directory."""
        return RunDir(next(iter(sorted(self.out.glob("*/job.json")))).parent)

    @property
    def screen(self) -> str:
        """The end of what it has printed."""
        return bytes(self._screen[-_SCREEN_BYTES:]).decode(errors="replace")

    def _start(self, words: Sequence[str], *, on_terminal: bool) -> subprocess.Popen[bytes]:
        """Start a command; what it prints is kept here."""
        read, write = pty.openpty() if on_terminal else os.pipe()
        # As from an interactive shell: a session whose terminal this is, so that closing it means what it means there.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "headway", *words],
            cwd=self.place,
            stdin=write if on_terminal else subprocess.DEVNULL,
            stdout=write,
            stderr=write,
            env={**os.environ, "TERM": "dumb", "PWD": str(self.place)},
            start_new_session=True,
            preexec_fn=_take_terminal if on_terminal else None,
        )
        os.close(write)
        self._is_hung_up.clear()
        self._reader = threading.Thread(target=self._keep, args=(read,), daemon=True)
        self._reader.start()
        return process

    def _keep(self, file: int) -> None:
        """Keep what is printed; the only one who closes this end, for a file must not be closed under its reader."""
        with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
            while not self._is_hung_up.is_set():
                if select.select([file], [], [], 0.05)[0]:
                    data = os.read(file, 1 << 16)
                    if not data:
                        break
                    self._screen += data
                    del self._screen[: -2 * _SCREEN_BYTES]
        os.close(file)

    def close_terminal(self) -> None:
        """Do what closing the window does: the last one to hold the terminal lets go of it."""
        self._is_hung_up.set()
        self._reader.join()

    def resume(self) -> None:
        """Start the run again after its supervisor is gone."""
        self.process = self._start(["resume", str(self.run.root)], on_terminal=False)

    def events(self, kind: str) -> list[Event]:
        """Return the run's events of a kind."""
        return [event for event in read_events(self.run.events) if event.get("kind") == kind]

    def attempt(self) -> int:
        """Return the number of the newest attempt."""
        return max((whole(event.get("attempt")) or 0 for event in self.events("attempt_started")), default=0)

    def beats(self) -> list[Beat]:
        """Return the heartbeats of the ranks of the newest attempt that train; fewer than ranks: not all do yet."""
        started = self.events("attempt_started")
        if not started:
            return []
        num = whole(started[-1].get("world_size")) or 0
        found = [read_beat(self.run.heartbeat(rank)) for rank in range(num)]
        beats = [beat for beat in found if beat is not None and beat.attempt == started[-1]["attempt"]]
        is_training = len(beats) == num > 0 and all(beat.phase in _IN_STEP for beat in beats)
        return beats if is_training else []

    def wait_training(self, *, after: int = 0) -> list[Beat]:
        """Wait until all ranks of an attempt later than this one have ended a step of their own."""
        first: list[Beat] = []

        def has_moved() -> bool:
            nonlocal first
            beats = self.beats()
            if not beats or beats[0].attempt <= after:
                return False
            if not first or first[0].attempt != beats[0].attempt:
                first = beats
            return min(beat.step for beat in beats) > max(beat.step for beat in first)

        self.wait(has_moved, _START_S)
        return self.beats() or first

    def wait(self, is_true: Callable[[], Any], seconds: float = _WAIT_S) -> None:
        """Wait for something to come true.

        Raises:
            TrainError: it does not, or the run is over.
        """
        until = time.monotonic() + seconds
        while not is_true():
            if self.process.poll() is not None and not is_true():
                raise TrainError("rehearse/run-ended", code=self.process.returncode, log=self.last_words())
            if time.monotonic() > until:
                raise TrainError("rehearse/no-answer", seconds=round(seconds), log=self.last_words())
            time.sleep(0.01)

    def last_words(self) -> str:
        """Return the last line that the run has printed."""
        lines = [line.strip() for line in self.screen.splitlines() if line.strip()]
        stops = [line for line in lines if line.startswith(("✗", "error:"))]
        return (stops or lines or [""])[-1][:300]

    def stop(self) -> None:
        """Let it save and end."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_STOP_S)

    def kill(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            left = descendants(self.process.pid)
            self.process.kill()
            self.process.wait()
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        self._is_hung_up.set()
        self._reader.join()


def raise_faults(
    words: Sequence[str],
    *,
    faults: Sequence[str] = tuple(FAULTS),
    storage: Storage | None = None,
    keep: bool = False,
    tell: Callable[[Survival], None] = lambda found: None,
) -> Rehearsal:
    """Raise each of the faults on a run of its own and return what followed.

    Args:
        words: of `headway train`; none that names a config: a toy.
        faults: names of `FAULTS`, in their order.
        storage: what was found out about the disk, to be handed on.
        keep: leave the run's folder.
        tell: called with each fault as it is over.

    Raises:
        TrainError: the run did not even start.
    """
    began = time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="headway-rehearse-"))
    is_toy = not words or "=" in words[0]
    if is_toy:
        shutil.copytree(_TOY, place / "toy", ignore=shutil.ignore_patterns("__pycache__"))
        words = [str(place / "toy"), *words]
    found: list[Survival] = []
    is_kept = keep
    try:
        with SmallDisk(place / "disk", wanted="disk" in faults and is_toy) as disk:
            rehearsed = Rehearsed(place, words, disk, is_toy=is_toy)
            try:
                is_exact = _raise_all(rehearsed, faults, found, tell)
            finally:
                rehearsed.kill()
                is_kept = keep or any(one.state == "failed" for one in found)
                if is_kept:
                    (place / "screen").write_text(rehearsed.screen, encoding="utf-8")
                    disk.rescue(place / "kept")
    finally:
        if not is_kept:
            shutil.rmtree(place, ignore_errors=True)
    return Rehearsal(
        faults=tuple(found),
        storage=storage,
        seconds=time.monotonic() - began,
        is_data_exact=is_exact,
        log=str(place) if is_kept else "",
    )


def _raise_all(
    rehearsed: Rehearsed, faults: Sequence[str], found: list[Survival], tell: Callable[[Survival], None]
) -> bool | None:
    """Raise one fault after the other, stop the run, and say whether it has trained on every sample once."""
    rehearsed.wait(lambda: list(rehearsed.out.glob("*/job.json")), _START_S)
    rehearsed.wait_training()
    for name in (one for one in FAULTS if one in faults):
        found.append(_try(name, rehearsed))
        tell(found[-1])
        if found[-1].state == "failed":
            break
    rehearsed.stop()
    return _is_data_exact(rehearsed.run)


def _try(name: str, rehearsed: Rehearsed) -> Survival:
    try:
        return FAULTS[name](rehearsed)
    except NotPossible as why:
        return Survival(fault=name, state="skipped", code=why.code, facts=why.facts)
    except TrainError as err:
        return Survival(fault=name, state="failed", code=err.code, facts=dict(err.facts))


def _is_data_exact(run: RunDir) -> bool | None:
    """Say whether the ledger of the newest checkpoint is the one that its position must have."""
    found = find_resumable(run.checkpoints).manifest
    config = section(read_record(run.job).get("config"))
    seed, size = whole(config.get("seed")), whole((found.meta if found else {}).get("data_size"))
    if found is None or seed is None or size is None:
        return None
    progress = section(found.meta.get("progress"))
    skips = [(int(low), int(high)) for low, high in progress.get("skips") or ()]
    return int(found.ledger, 16) == expected_ledger(Order(size, seed), found.samples, skips)


def _take_terminal() -> None:
    """Make the standard input the terminal of this session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
