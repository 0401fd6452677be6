"""Who holds a run, by the lock in its directory: it works from every container of the machine."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

LOCK_NAME: Final = ".lease-lock"
"""In the run directory; whoever supervises the run holds its lock, in whatever container."""


def is_locked(root: Path) -> bool | None:
    """Say whether a process holds the lock of a run; none: the lock cannot be looked at."""
    try:
        lock = os.open(root / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(lock)
    return False
