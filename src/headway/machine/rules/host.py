"""Limits and room of a host: files, processes, pinned memory, cores, memory, shared memory, disks."""

from __future__ import annotations

from collections.abc import Iterator

from headway.machine.record import Finding
from headway.units import count, size

GIB = 1 << 30
NOFILE = 4096
"""Each tensor a data loader process hands over is an open file in the rank."""
_NPROC = 4096
"""A rank with its loader processes, BLAS and communication threads has some hundred."""
_MEMLOCK = GIB
_SHM = 4 * GIB
_FEW_CORES = 4
_SMALL_MEMORY = 8 * GIB
_MOUNT_FREE = 20 * GIB
_MOUNT_FULL_PERCENT = 85
INODES = 10_000
"""A run makes some hundred files; others on the disk make the rest."""
_NOT_DATA = ("/dev", "/run", "/sys", "/proc", "/boot", "/snap", "/etc", "/usr/lib", "/usr/bin", "/efi")


def judge_limits(*, nofile: int | None, memlock_bytes: int | None, nproc: int | None) -> Iterator[Finding]:
    """Yield limits below what a run over several processes wants; None: no limit."""
    if nofile is not None and nofile < NOFILE:
        facts = {"have": str(nofile), "need": str(NOFILE)}
        yield Finding(code="machine/nofile-low", level="note" if nofile >= NOFILE // 4 else "warn", facts=facts)
    if memlock_bytes is not None and memlock_bytes < _MEMLOCK:
        facts = {"have": size(memlock_bytes), "need": size(_MEMLOCK)}
        yield Finding(code="machine/memlock-low", level="note", facts=facts)
    if nproc is not None and nproc < _NPROC:
        facts = {"have": str(nproc), "need": str(_NPROC)}
        yield Finding(code="machine/nproc-low", level="warn", facts=facts)


def judge_cores(cores: int | None) -> Iterator[Finding]:
    """Yield a machine with few cores."""
    if cores is not None and cores <= _FEW_CORES:
        yield Finding(code="machine/few-cores", level="note", facts={"cores": str(cores)})


def judge_memory(total_bytes: int | None, swap_bytes: int | None, swap_free_bytes: int | None) -> Iterator[Finding]:
    """Yield little memory, and no swap, or none left."""
    if total_bytes is not None and total_bytes < _SMALL_MEMORY:
        facts = {"total": size(total_bytes), "need": size(_SMALL_MEMORY)}
        yield Finding(code="machine/memory-small", level="note", facts=facts)
    if swap_bytes == 0:
        yield Finding(code="machine/no-swap", level="note", facts={})
    elif swap_bytes and swap_free_bytes == 0:
        yield Finding(code="machine/swap-full", level="note", facts={"total": size(swap_bytes)})


def judge_shm(total_bytes: int | None) -> Iterator[Finding]:
    """Yield a shared memory that loader processes or NCCL would fill."""
    if total_bytes is not None and total_bytes < _SHM:
        facts = {"total": size(total_bytes), "need": size(_SHM)}
        yield Finding(code="machine/shm-little", level="note" if total_bytes >= GIB else "warn", facts=facts)


def judge_inodes(mount: str, free: int | None) -> Iterator[Finding]:
    """Yield a disk that can hold few more files."""
    if free is not None and free < INODES and not mount.startswith(_NOT_DATA):
        facts = {"place": mount, "free": count(free), "need": count(INODES)}
        yield Finding(code="machine/inodes-low", level="warn", facts=facts)


def judge_mount(mount: str, free_bytes: int | None, used_percent: int | None) -> Iterator[Finding]:
    """Yield a disk with little room for checkpoints; places that hold none are passed over."""
    if mount.startswith(_NOT_DATA):
        return
    is_low = free_bytes is not None and free_bytes < _MOUNT_FREE
    is_full = used_percent is not None and used_percent >= _MOUNT_FULL_PERCENT
    if is_low or is_full:
        used = "n/a" if used_percent is None else str(used_percent)
        yield Finding(
            code="machine/mount-filling", level="note", facts={"mount": mount, "free": size(free_bytes), "used": used}
        )
