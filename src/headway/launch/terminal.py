"""Continuing without a terminal after it was closed."""

from __future__ import annotations

import os
from typing import Final

from headway.telemetry import RunDir

LOG_NAME: Final = "supervisor.log"


def leave_terminal(run: RunDir) -> bool:
    """Point what was on a terminal at supervisor.log instead; say whether anything did.

    Writing to a closed terminal fails, and reading it may stop the process; the run needs neither.
    """
    on_terminal = [fd for fd in (0, 1, 2) if _is_terminal(fd)]
    if not on_terminal:
        return False
    log = os.open(run.root / LOG_NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for fd in on_terminal:
        os.dup2(log if fd else nothing, fd)
    os.close(log)
    os.close(nothing)
    return True


def _is_terminal(fd: int) -> bool:
    """Like isatty, which says no for a terminal that has hung up already."""
    try:
        name = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return False
    return name.startswith(("/dev/pts/", "/dev/tty", "/dev/console"))
