"""Who supervises a run, in a form that tells a living supervisor from a dead one and from another with its pid."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any


def make_lease(pid: int | None = None) -> dict[str, Any]:
    """Return the lease of a process of this machine: pid, start ticks, boot and host."""
    pid = os.getpid() if pid is None else pid
    return {"pid": pid, "boot_id": boot_id(), "start_ticks": start_ticks(pid), "host": socket.gethostname()}


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


def is_here(lease: dict[str, Any]) -> bool:
    """Say whether the lease was taken on this host, where its pid means something."""
    return lease.get("host") == socket.gethostname()


def is_held(lease: dict[str, Any]) -> bool:
    """Say whether the process of a lease of this host still lives: same pid, same start, same boot."""
    pid = lease.get("pid")
    if not isinstance(pid, int) or lease.get("boot_id") != boot_id():
        return False
    ticks = start_ticks(pid)
    return ticks is not None and ticks == lease.get("start_ticks")
