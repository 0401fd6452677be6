"""What the guides' own commands share: their log, their size on this machine, and a training run behind them."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TextIO

from headway.config import LoadedConfig, RunConfig, flatten, layer_of, load_config, write_word
from headway.machine import inspect_machine
from headway.messages import say
from headway.process import die_with_parent
from headway.task import find_recipe
from headway.telemetry import Event, RunDir, follow_events, list_runs, read_metrics

FULL_SIZE = "--full-size"


class GuideLog:
    """Writes each line to the screen and to the log file the guide promises."""

    def __init__(self, path: Path, *, mode: Literal["a", "x"] = "a") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file: TextIO = path.open(mode, encoding="utf-8")
        self._lock = threading.Lock()

    @classmethod
    def of_now(cls, folder: Path, name: str) -> GuideLog:
        """Begin the log of one command, named after this second; a second command in the same second gets its own."""
        wanted = folder / f"{name}_{time.strftime('%Y%m%d_%H%M%S')}.log"
        for path in _names(wanted):
            with contextlib.suppress(FileExistsError):
                return cls(path, mode="x")
        raise AssertionError("the names have no end")

    def write(self, line: str) -> None:
        """Write one line as it is."""
        with self._lock:
            for stream in (sys.stdout, self._file):
                stream.write(f"{line}\n")
                stream.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def has_gpu() -> bool:
    """Say whether this machine has a GPU that can be used."""
    report = inspect_machine(Path.cwd())
    return any(not gpu.lost for gpu in report.gpus)


def take_full_size(argv: Sequence[str]) -> tuple[bool, list[str]]:
    """Return whether the guide's own size is trained here, and the arguments without our flag."""
    return FULL_SIZE in argv or has_gpu(), [word for word in argv if word != FULL_SIZE]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine:
    """One step in a guide's own words, and how often it is written."""

    write: Callable[[int, float, float, float], str | None]
    """Takes step, loss, learning rate and seconds of the step; none: nothing to say about this one."""
    every: int


def headway(*words: str) -> list[str]:
    """Return a Headway command for this interpreter."""
    return [sys.executable, "-P", "-m", "headway", *words]


def load(source: str | Path, words: Sequence[str] = ()) -> LoadedConfig:
    """Return the config as `headway train SOURCE WORDS…` reads it: the environment counts here too."""
    return load_config(source, recipe=find_recipe, overrides=words, environ=os.environ)


def changed_words(before: RunConfig, now: RunConfig, keys: tuple[str, ...] = ("",)) -> list[str]:
    """Return what is said now and was not when the run began, of keys that begin so."""
    old, new = flatten(before.model_dump(mode="json")), flatten(now.model_dump(mode="json"))
    changed = [key for key, value in new.items() if key not in old or old[key] != value]
    return [write_word(key, new[key]) for key in changed if key.startswith(keys)]


def train(
    words: Sequence[str],
    log: GuideLog,
    *,
    out: Path,
    step_line: StepLine | None = None,
    on_event: Callable[[Event], str | None] = lambda _: None,
    on_run: Callable[[RunDir], None] = lambda _: None,
) -> tuple[int, RunDir | None]:
    """Run `headway train` (or `resume`), its talk and the guide's own lines in the log; return exit code and run.

    Ctrl-C reaches the child through the terminal; this process only waits for it to save and stop.
    """
    before = {run.root for run in list_runs(out)}
    child = subprocess.Popen(
        headway(*words),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=os.getcwd(),
        # A launcher that loses patience kills this process; the run then saves and stops, and is nobody's orphan.
        preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGTERM),
    )
    kept = [(signum, signal.signal(signum, _pass_on(child))) for signum in (signal.SIGINT, signal.SIGTERM)]
    talk = threading.Thread(target=_copy_lines, args=(child, log))
    talk.start()
    follower = threading.Thread(target=_follow, args=(child, out, before, log, step_line, on_event, on_run))
    follower.start()
    code = child.wait()
    talk.join()
    follower.join()
    for signum, handler in kept:
        signal.signal(signum, handler)
    fresh = [run for run in list_runs(out) if run.root not in before]
    return code, fresh[-1] if fresh else None


def _pass_on(child: subprocess.Popen[bytes]) -> Callable[[int, object], None]:
    def handler(signum: int, _: object) -> None:
        # The terminal sends Ctrl-C to the child as well, which takes two within a moment as one.
        if child.poll() is None:
            child.send_signal(signum)

    return handler


def _copy_lines(child: subprocess.Popen[bytes], log: GuideLog) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        log.write(line.decode("utf-8", "replace").rstrip("\n"))


def _follow(
    child: subprocess.Popen[bytes],
    out: Path,
    before: set[Path],
    log: GuideLog,
    step_line: StepLine | None,
    on_event: Callable[[Event], str | None],
    on_run: Callable[[RunDir], None],
) -> None:
    """Write the guide's own lines as the run goes on."""
    run = _wait_for_run(child, out, before)
    if run is None:
        return
    on_run(run)
    steps = threading.Thread(target=_follow_steps, args=(child, run, log, step_line))
    steps.start()
    for event in follow_events(run.events, lambda: child.poll() is not None):
        line = on_event(event)
        if line:
            log.write(line)
    steps.join()


def _wait_for_run(child: subprocess.Popen[bytes], out: Path, before: set[Path]) -> RunDir | None:
    while True:
        is_over = child.poll() is not None
        fresh = [run for run in list_runs(out) if run.root not in before]
        if fresh or is_over:
            return fresh[-1] if fresh else None
        time.sleep(0.05)


def _follow_steps(child: subprocess.Popen[bytes], run: RunDir, log: GuideLog, step_line: StepLine | None) -> None:
    told = 0
    while step_line is not None:
        is_over = child.poll() is not None
        rows = read_metrics(run.metrics(0))
        for index, step in enumerate(rows["step"]):
            if step > told and int(step) % step_line.every == 0:
                told = int(step)
                line = step_line.write(told, rows["loss"][index], rows["lr"][index], rows["dt"][index])
                if line:
                    log.write(line)
        if is_over:
            return
        time.sleep(0.2)


def set_aside(paths: Sequence[Path]) -> None:
    """Give files of an earlier run another name, so that a guide's fixed names are free and nothing is lost."""
    for path in paths:
        made = time.strftime("%Y%m%d_%H%M%S", time.localtime(path.stat().st_mtime))
        path.rename(next(name for name in _names(path.with_name(f"{made}_{path.name}")) if not name.exists()))


def _names(wanted: Path) -> Iterator[Path]:
    """Yield a name and then the same one with a number, for as long as somebody else has it."""
    yield wanted
    for number in itertools.count(2):
        yield wanted.with_name(f"{wanted.stem}_{number}{wanted.suffix}")


def asks_for_steps(loaded: LoadedConfig) -> bool:
    """Say whether somebody counts the run's length in steps, and not the recipe alone."""
    return loaded.config.train.steps is not None and layer_of(loaded.origins["train.steps"]) != "recipe"


def size_line(is_full: bool, size: str) -> str:
    """Return the first line: which size is trained here, and how to get the other."""
    return say("recipes/guide-full" if is_full else "recipes/guide-small", size=size, flag=FULL_SIZE)
