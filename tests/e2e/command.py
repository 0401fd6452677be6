"""Running the real command in a folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from headway.machine.cpu import LIMITS
from headway.telemetry import RunDir, read_beat, read_events

TINY = str(Path(__file__).parent.parent / "fakes" / "tiny")
ANSWERS = Path(".cache", "headway", "cpu")
KNOWN = Path.home() / ANSWERS
"""What conftest.py has found out of this processor, where it had to look; read before tests get homes of their own."""


def clean_env(home: Path, **more: str) -> dict[str, str]:
    """Return an environment as a new user has it: an empty home, English, no leftovers.

    What this processor needs to compute (see conftest.py) stays, and so does what is known of it, or every command in
    an empty home would look for it, for seconds.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", *LIMITS) if name in os.environ}
    if KNOWN.is_dir() and not (home / ANSWERS).exists():
        shutil.copytree(KNOWN, home / ANSWERS)
    return {**kept, "HOME": str(home), "LANG": "C.UTF-8", **more}


def headway(place: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = [sys.executable, "-m", "headway", *words]
    return subprocess.run(command, cwd=place, env=clean_env(place, **env), capture_output=True, text=True, timeout=240)


def start(place: Path, *words: str, **env: str) -> subprocess.Popen[bytes]:
    """Start a command; what it prints goes to `screen` in the folder."""
    with (place / "screen").open("wb") as screen:
        command = [sys.executable, "-m", "headway", *words]
        return subprocess.Popen(command, cwd=place, env=clean_env(place, **env), stdout=screen, stderr=screen)


def only_run(place: Path) -> RunDir:
    """Return the one run in the folder."""
    (job,) = (place / "runs").glob("*/job.json")
    return RunDir(job.parent)


def events(run: RunDir, kind: str) -> list[dict]:
    """Return the run's events of a kind."""
    return [event for event in read_events(run.events) if event["kind"] == kind]


def wait_until(is_true: Callable[[], object], seconds: float = 60) -> None:
    """Wait for a condition, or fail."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def wait_for_step(place: Path, step: int, seconds: float = 60) -> RunDir:
    """Return the run once rank 0 has finished a step."""
    found: list[RunDir] = []

    def is_there() -> bool:
        for job in (place / "runs").glob("*/job.json"):
            beat = read_beat(RunDir(job.parent).heartbeat(0))
            if beat is not None and beat.step >= step:
                found.append(RunDir(job.parent))
        return bool(found)

    wait_until(is_there, seconds)
    return found[0]


def processes_of(place: Path) -> list[str]:
    """Return command lines of live processes that work in the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (entry / "cwd").resolve() == place.resolve() and "State:\tZ" not in (entry / "status").read_text():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def as_json(done: subprocess.CompletedProcess[str]) -> dict:
    """Return the one JSON object a command printed."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def stop_hard(process: subprocess.Popen[bytes]) -> None:
    """End a started command at once."""
    if process.poll() is None:
        process.send_signal(signal.SIGQUIT)
        process.wait(30)
