"""A training run behind one of a guide's commands: started, followed, and ended by one rule for Ctrl-C.

Ctrl-C, and every other polite stop, reaches the run, which saves and ends; this process waits for it and then finishes
the guide's files. Whatever else it has started (the writer of `.pt` files) runs in a session of its own: the terminal
cannot end it before the last file is there, and ends with this process in any case.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headway.guide.log import GuideLog
from headway.guide.typed import typed_as
from headway.messages import language
from headway.process import die_with_parent
from headway.telemetry import Event, RunDir, follow_events, list_runs, read_events, read_metrics

_LOOK_S = 0.2
_WIDTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step, as the run's metrics have it."""

    step: int
    samples: int
    """Taken since the first step of the training, whatever the batch was."""
    loss: float
    lr: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who hears of a run as it continues; each returns a line for the log, or none."""

    run: Callable[[RunDir], None] = lambda _: None
    event: Callable[[Event], str | None] = lambda _: None
    step: Callable[[Step], str | None] | None = None


def headway(*words: str) -> list[str]:
    """Return a Headway command for this interpreter, in the language of this process."""
    return [sys.executable, "-P", "-m", "headway", "--lang", language(), *typed_as(), *words]


def follow(words: Sequence[str], log: GuideLog, listener: Listener, *, out: Path) -> tuple[int, RunDir | None]:
    """Run `headway train` or `resume`, its talk and the guide's own lines in the log; return exit code and run."""
    before = {run.root for run in list_runs(out)}
    known = RunDir(Path(words[1])) if words[0] == "resume" and "--step" not in words else None
    child = subprocess.Popen(
        headway(*words),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=os.getcwd(),
        env=_environment(),
        # A launcher that loses patience kills this process; the run then saves and stops, and is nobody's orphan.
        preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGTERM),
    )
    kept = [(signum, signal.signal(signum, _pass_on(child))) for signum in (signal.SIGINT, signal.SIGTERM)]
    threads = [
        threading.Thread(target=_copy_lines, args=(child, log.write)),
        threading.Thread(target=_listen, args=(child, out, before, known, log, listener)),
    ]
    for thread in threads:
        thread.start()
    code = child.wait()
    for thread in threads:
        thread.join()
    for signum, handler in kept:
        signal.signal(signum, handler)
    # Ended by a signal before it could answer it: as a shell tells it.
    return code if code >= 0 else 128 - code, known or _find_started(child.pid, out, before)


def copy_output(command: Sequence[str], write: Callable[[str], None]) -> int:
    """Run a command, each line of its output handed to `write`; return its exit code."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=_environment()) as child:
        _copy_lines(child, write)
    return child.returncode


def _environment() -> dict[str, str]:
    """Return ours for a command whose output is read here: it writes UTF-8, whatever this terminal shows."""
    # Its output is not a terminal; tables are as wide as ours, and not narrower than their own words.
    columns = str(max(_WIDTH, shutil.get_terminal_size().columns))
    return {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": columns}


@contextlib.contextmanager
def finishing(tell: Callable[[], None]) -> Iterator[None]:
    """Write the last files although somebody presses Ctrl-C once the run is over; a second time ends at once."""

    def handler(signum: int, _: object) -> None:
        signal.signal(signum, signal.SIG_DFL)
        tell()

    kept = [(signum, signal.signal(signum, handler)) for signum in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield
    finally:
        for signum, before in kept:
            signal.signal(signum, before)


def _pass_on(child: subprocess.Popen[bytes]) -> Callable[[int, object], None]:
    def handler(signum: int, _: object) -> None:
        # The terminal sends Ctrl-C to the child as well, which takes two within a moment as one.
        if child.poll() is None:
            child.send_signal(signum)

    return handler


def _copy_lines(child: subprocess.Popen[bytes], write: Callable[[str], None]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        write(line.decode("utf-8", "replace").rstrip("\n"))


def _listen(
    child: subprocess.Popen[bytes],
    out: Path,
    before: set[Path],
    known: RunDir | None,
    log: GuideLog,
    listener: Listener,
) -> None:
    """Write the guide's own lines as the run continues."""
    since = _count_events(known)
    run = known or _wait_for_run(child, out, before)
    if run is None:
        return
    listener.run(run)
    steps = threading.Thread(target=_listen_to_steps, args=(child, run, log, listener, _last_step(known)))
    steps.start()
    for number, event in enumerate(follow_events(run.events, lambda: child.poll() is not None)):
        line = listener.event(event) if number >= since else None
        if line:
            log.write(line)
    steps.join()


def _count_events(known: RunDir | None) -> int:
    """Return how many events a run that is resumed in its own directory has had before; they were reported then."""
    return len(list(follow_events(known.events, lambda: True))) if known is not None else 0


def _last_step(known: RunDir | None) -> int:
    rows = read_metrics(known.metrics(0))["step"] if known is not None else []
    return int(rows[-1]) if len(rows) else 0


def _wait_for_run(child: subprocess.Popen[bytes], out: Path, before: set[Path]) -> RunDir | None:
    while True:
        is_over = child.poll() is not None
        run = _find_started(child.pid, out, before)
        if run is not None or is_over:
            return run
        time.sleep(0.05)


def _find_started(pid: int, out: Path, before: set[Path]) -> RunDir | None:
    """Return the run that a process has begun; another terminal may begin one in the same second."""
    for run in list_runs(out):
        if run.root in before:
            continue
        if any((event.get("starter") or {}).get("pid") == pid for event in read_events(run.events)):
            return run
    return None


def _listen_to_steps(child: subprocess.Popen[bytes], run: RunDir, log: GuideLog, listener: Listener, told: int) -> None:
    while listener.step is not None:
        is_over = child.poll() is not None
        rows = read_metrics(run.metrics(0))
        for index, step in enumerate(rows["step"]):
            if step <= told:
                continue
            told = int(step)
            at = Step(
                step=told,
                samples=int(rows["samples"][index]),
                loss=rows["loss"][index],
                lr=rows["lr"][index],
                seconds=rows["dt"][index],
            )
            line = listener.step(at)
            if line:
                log.write(line)
        if is_over:
            return
        time.sleep(_LOOK_S)
