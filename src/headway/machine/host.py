"""The machine apart from its GPUs: processor, memory, shared memory, disk, limits."""

from __future__ import annotations

import os
import platform
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from headway.machine.cgroup import GroupLimits, read_group_limits

_NO_LIMIT: Final = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """Space at the place where the runs will be written."""

    place: Path
    """Nearest part of the path that exists."""
    total_bytes: int | None
    free_bytes: int | None
    free_inodes: int | None
    writable: bool


def read_os() -> str:
    """Return the name of the system as its makers write it: `Ubuntu 24.04.1 LTS`."""
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def read_cpu(cpuinfo: Path = Path("/proc/cpuinfo")) -> str | None:
    """Return the model of the processor."""
    if not cpuinfo.exists():
        return platform.processor() or None
    for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Hardware", "cpu model"):
            return " ".join(value.split()) or None
    return platform.machine() or None


def count_cores(limits: GroupLimits) -> int:
    """Return the cores this process may keep busy: its affinity, cut by the cgroup's quota."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        allowed = os.cpu_count() or 1
    if limits.cores is None:
        return allowed
    # Half a core more would only be throttled; less than one still runs one thread.
    return max(1, min(allowed, int(limits.cores)))


def read_memory(limits: GroupLimits) -> tuple[int, int]:
    """Return (bytes this process may use, bytes of them still free)."""
    try:
        memory = psutil.virtual_memory()
        total, free = int(memory.total), int(memory.available)
    except OSError:  # no /proc in this container: the C library knows the pages anyway
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = os.sysconf("SC_PHYS_PAGES") * page, os.sysconf("SC_AVPHYS_PAGES") * page
    if limits.memory_bytes is None or limits.memory_bytes >= total:
        return total, free
    left = limits.memory_bytes if limits.memory_free_bytes is None else limits.memory_free_bytes
    return limits.memory_bytes, min(free, left)


def free_memory_bytes() -> int:
    """Return the memory that this process may still take."""
    return read_memory(read_group_limits())[1]


def free_address_bytes() -> int:
    """Return the addresses that this process may still take (`ulimit -v`); without a limit far more than any memory."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return _NO_LIMIT
    return max(0, limit - int(psutil.Process().memory_info().vms))


def read_swap() -> int | None:
    """Return the size of the swap space; none where the system does not tell."""
    try:
        return int(psutil.swap_memory().total)
    except OSError:
        return None


def read_shm(place: Path = Path("/dev/shm")) -> tuple[int | None, int | None]:
    """Return (size, free) of the shared memory that data loader processes use."""
    if not place.is_dir():
        return None, None
    found = os.statvfs(place)
    return found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail


def read_disk(out: Path) -> Disk:
    """Return the space where `out` is or will be made."""
    place = out.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    writable = place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    try:
        found = os.statvfs(place)
    except OSError:  # a network disk that went away: there is no reading, and nothing can be written
        return Disk(place=place, total_bytes=None, free_bytes=None, free_inodes=None, writable=False)
    return Disk(
        place=place,
        total_bytes=found.f_frsize * found.f_blocks,
        free_bytes=found.f_frsize * found.f_bavail,
        free_inodes=found.f_favail if found.f_files else None,
        writable=writable,
    )


def read_nofile() -> tuple[int | None, int | None]:
    """Return (soft, hard) limit of open files; None: no limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = resource.RLIM_INFINITY
    return (None if soft == endless else soft, None if hard == endless else hard)
