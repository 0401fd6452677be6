"""Runs of the fake worker under a real supervisor in a process of its own."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headway.telemetry import RunDir, read_events

ROOT = Path(__file__).parents[2]
MARK = "LAUNCH_TEST_MARK"
PATIENCE_S = 60.0


def make_run(
    folder: Path,
    name: str = "run",
    *,
    world_size: int = 2,
    grace_s: float = 20.0,
    restarts: int = 3,
    on_hang: str = "wait",
    **fake: Any,
) -> RunDir:
    """Make a run directory whose job is for the fake worker."""
    run = RunDir(folder / name)
    (run.root / "ranks").mkdir(parents=True)
    run.checkpoints.mkdir()
    launch = {"grace_s": grace_s, "restarts": restarts, "on_hang": on_hang}
    config = {"launch": launch, "env": {"python": None}, "fake": fake}
    plan = {"world_size": world_size, "threads": 1, "gpus": []}
    run.job.write_text(
        json.dumps({"schema": "job/1", "recipe": "fake", "task": "fake", "config": config, "plan": plan})
    )
    return run


def fault(do: str, **facts: Any) -> dict[str, Any]:
    """Return one scripted fault: `rank`, `step` and `attempts` say where it strikes."""
    return {"do": do, **facts}


def wait_until(is_so: Callable[[], Any], what: str) -> Any:
    """Wait for something that must come to pass."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if answer := is_so():
            return answer
        time.sleep(0.01)
    raise AssertionError(f"waited {PATIENCE_S:.0f} s in vain for {what}")


class Launch:
    """A supervisor at work, seen from outside."""

    def __init__(self, run: RunDir, *arguments: str, **popen: Any) -> None:
        self.run = run
        self.mark = secrets.token_hex(8)
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/fakes/launch_driver.py"), str(run.root), *arguments],
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(self.mark), **popen},
        )

    def wait(self) -> int:
        """Wait for the end and return the exit code."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        self.out, self.err = (out or b"").decode(), (err or b"").decode()
        return self.process.returncode

    def signal(self, signum: int) -> None:
        """Signal the supervisor."""
        self.process.send_signal(signum)

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a kind so far."""
        return [event for event in read_events(self.run.events) if event["kind"] == kind]

    def wait_event(self, kind: str, number: int = 1) -> dict[str, Any]:
        """Wait for the n-th event of a kind."""
        return wait_until(lambda: self.events(kind)[number - 1 : number], f"{kind} number {number}")[0]

    def wait_line(self, line: str) -> None:
        """Wait until some rank has printed a line."""
        wait_until(lambda: self.run.log.exists() and line.encode() in _tail(self.run.log), line)

    def left_over(self) -> list[int]:
        """Return processes that still live and were started by this launch, found by a mark of the test's own."""
        return marked(self.mark)

    def wait_clean(self) -> None:
        """Wait until nothing of this launch is left."""
        wait_until(lambda: not self.left_over(), f"the end of {self.left_over()}")


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 100_000))
        return file.read()


@contextmanager
def launched(run: RunDir, *arguments: str, **popen: Any) -> Iterator[Launch]:
    """Launch, and whatever happens leave nothing behind that the test did not look at."""
    launch = Launch(run, *arguments, **popen)
    try:
        yield launch
    finally:
        if launch.process.poll() is None:
            launch.process.kill()
        launch.process.wait()
        for stream in (launch.process.stdout, launch.process.stderr):
            if stream is not None:
                stream.close()
        for pid in launch.left_over():
            os.kill(pid, signal.SIGKILL)


def finish(run: RunDir, *arguments: str) -> Launch:
    """Launch and wait for the end."""
    with launched(run, *arguments) as launch:
        launch.wait()
        launch.wait_clean()
    return launch


def environment(mark: str) -> dict[str, str]:
    """Return the environment of a launch, with a mark that all its processes inherit."""
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}", MARK: mark}


def marked(mark: str) -> list[int]:
    """Return the living processes that inherited a mark."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                environ = (place / "environ").read_bytes()
            except OSError:
                continue
            if f"{MARK}={mark}".encode() in environ.split(b"\0"):
                found.append(int(place.name))
    return found
