"""`headway watch` on a terminal leaves the terminal as it found it, however it ends."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fakes.run_fixture import write_live_run

HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"


def read_until(fd: int, mark: bytes, seen: bytes = b"") -> bytes:
    deadline = time.monotonic() + 30
    with contextlib.suppress(OSError):  # the other end is closed
        while mark not in seen and time.monotonic() < deadline:
            if select.select([fd], [], [], 1.0)[0]:
                seen += os.read(fd, 65536)
    assert mark in seen
    return seen


@pytest.fixture
def watching(tmp_path: Path):
    """A live view of a run that this process supervises, and the other end of its terminal."""
    write_live_run(tmp_path / "20260101-000000_a_0000")
    ours, theirs = pty.openpty()
    words = [sys.executable, "-P", "-m", "headway", "watch", "--out", str(tmp_path)]
    child = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    yield child, ours
    child.kill()
    child.wait()
    os.close(ours)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGQUIT])
def test_a_signal_that_ends_the_view_gives_the_cursor_back(watching, signum: int) -> None:
    child, screen = watching
    seen = read_until(screen, HIDE)
    child.send_signal(signum)
    read_until(screen, SHOW, seen.rpartition(HIDE)[2])
    assert child.wait(60) == -signum


def test_ctrl_z_gives_the_cursor_back_until_the_view_goes_on(watching) -> None:
    child, screen = watching
    seen = read_until(screen, HIDE)
    child.send_signal(signal.SIGTSTP)
    seen = read_until(screen, SHOW, seen.rpartition(HIDE)[2])
    assert os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1])
    child.send_signal(signal.SIGCONT)
    read_until(screen, HIDE, seen.rpartition(SHOW)[2])
