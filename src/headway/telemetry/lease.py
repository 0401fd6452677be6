"""Who supervises a run, in a form that tells a living supervisor from a dead one and from another with its pid."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from pathlib import Path
from typing import Any, Final

LOCK_NAME: Final = ".lease-lock"
"""In the run directory; whoever supervises the run holds its lock, in whatever container."""
_FIRST_NAMESPACE: Final = 0xEFFFFFFC
"""The kernel's own number for the PID namespace it starts with."""


def make_lease(pid: int | None = None) -> dict[str, Any]:
    """Return the lease of a process of this machine: pid, start ticks, boot, host and PID namespace."""
    pid = os.getpid() if pid is None else pid
    return {
        "pid": pid,
        "boot_id": boot_id(),
        "start_ticks": start_ticks(pid),
        "host": socket.gethostname(),
        "pid_ns": pid_namespace(),
    }


def pid_namespace(pid: int | str = "self") -> int | None:
    """Return the number of a process's PID namespace; none where the system does not tell."""
    try:
        return Path(f"/proc/{pid}/ns/pid").stat().st_ino
    except OSError:
        return None


def boot_id() -> str | None:
    """Return this boot's id; none where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; none when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold spaces and parentheses; fields count from the last one. Z: dead, not yet reaped.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def is_held(lease: dict[str, Any]) -> bool:
    """Say whether the process of a lease is seen alive from here."""
    return look_up(lease) is True


def look_up(lease: dict[str, Any]) -> bool | None:
    """Say whether the process of a lease lives; none: it cannot be seen from here.

    A container has pids of its own, and may have the host's name: only within one PID namespace a pid is a process.
    """
    if lease.get("host") != socket.gethostname():
        return None
    if not isinstance(lease.get("pid"), int) or lease.get("boot_id") != boot_id():
        return False
    if find_pid(lease) is not None:
        return True
    # From the first namespace root sees every process of the machine: what it does not see is gone.
    sees_all = pid_namespace() == _FIRST_NAMESPACE and os.geteuid() == 0
    return False if _is_same_namespace(lease) or sees_all else None


def find_pid(lease: dict[str, Any]) -> int | None:
    """Return the number by which the living process of a lease of this machine can be signalled from here."""
    pid = lease.get("pid")
    if not isinstance(pid, int):
        return None
    known = [pid] if _is_same_namespace(lease) else _find_in_namespace(lease["pid_ns"], pid)
    ticks = lease.get("start_ticks")
    return next((one for one in known if ticks is not None and start_ticks(one) == ticks), None)


def is_same_kernel(lease: dict[str, Any]) -> bool:
    """Say whether the lease was taken on this machine since it was started; its locks are then seen from here too."""
    is_same_boot = lease.get("boot_id") is not None and lease.get("boot_id") == boot_id()
    return is_same_boot and lease.get("host") == socket.gethostname()


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


def _is_same_namespace(lease: dict[str, Any]) -> bool:
    """Say whether pids of the lease are pids here; one of an older version does not tell, and meant ours."""
    own, theirs = pid_namespace(), lease.get("pid_ns")
    return own is None or not isinstance(theirs, int) or own == theirs


def _find_in_namespace(namespace: int, pid: int) -> list[int]:
    """Return the processes that have this number in a namespace inside of ours."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and pid_namespace(place.name) == namespace:
            with contextlib.suppress(OSError):
                lines = (place / "status").read_text(encoding="utf-8", errors="replace").splitlines()
                numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
                if numbers[-1:] == [str(pid)]:
                    found.append(int(place.name))
    return found
