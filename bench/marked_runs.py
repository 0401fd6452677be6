"""Start a command under a mark that all its processes inherit; afterwards find every one of them that is left."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARK = "HEADWAY_BENCH_MARK"


def new_mark() -> str:
    """Return a mark that no other run has."""
    return secrets.token_hex(8)


def environment(mark: str, folder: Path) -> dict[str, str]:
    """Return the environment of one run: this headway, this Python, claims and temp files of its own."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    temp = folder / "tmp"
    temp.mkdir(exist_ok=True)
    own = {"PYTHONPATH": str(ROOT / "src"), "PATH": path, MARK: mark}
    return {**os.environ, **own, "HEADWAY_CLAIMS": str(folder / "claims"), "TMPDIR": str(temp)}


def marked(mark: str) -> list[int]:
    """Return living processes that carry the mark."""
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


def wait_for_none(mark: str, limit_s: float) -> list[int]:
    """Wait until no marked process lives; return those still there at the limit."""
    deadline = time.monotonic() + limit_s
    while (left := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def end_all(pids: list[int]) -> None:
    """End what a run has left behind."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
