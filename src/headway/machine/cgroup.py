"""What the control group of this process allows: cores and memory, cgroup v1 and v2.

A container sees the whole machine in /proc; the limit it will really be killed at is only here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# cgroup v1 writes "no limit" as the largest page-aligned number; no machine has an exbibyte.
_NO_LIMIT = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Limits of a control group; None: no limit of that kind."""

    cores: float | None = None
    """CPU time per second, in cores."""
    memory_bytes: int | None = None
    memory_free_bytes: int | None = None
    """What is left of it; file cache counts as free, because the kernel drops it first."""


def read_group_limits(root: Path = Path("/")) -> GroupLimits:
    """Return the tightest limits on the way from this process's group up to the root."""
    groups = _groups_of_this_process(root / "proc/self/cgroup")
    mount = root / "sys/fs/cgroup"
    if "" in groups and (mount / "cgroup.controllers").exists():
        return _read_v2(mount, groups[""])
    cpu, memory = groups.get("cpu"), groups.get("memory")
    limits = _read_memory_v1(mount, memory) if memory is not None else []
    return _tightest(_read_cpu_v1(mount, cpu) if cpu is not None else [], limits)


def _tightest(cores: list[float], memory: list[tuple[int, int]]) -> GroupLimits:
    """Return the least of each: a child's limit may be the smaller one and its parent's room the lesser."""
    return GroupLimits(
        cores=min(cores, default=None),
        memory_bytes=min((limit for limit, _ in memory), default=None),
        memory_free_bytes=min((max(0, limit - used) for limit, used in memory), default=None),
    )


def _groups_of_this_process(path: Path) -> dict[str, str]:
    """Return controller -> path; v2's one group is under the empty name."""
    groups = {}
    for line in _text(path).splitlines():
        _, _, rest = line.partition(":")
        names, _, place = rest.partition(":")
        for name in names.split(","):
            groups[name] = place
    return groups


def _upward(mount: Path, place: str) -> Iterator[Path]:
    """Yield the group's folder and its parents; inside a container the path may start above the mount."""
    parts = [part for part in place.split("/") if part not in ("", "..")]
    for length in range(len(parts), -1, -1):
        folder = mount.joinpath(*parts[:length])
        if folder.is_dir():
            yield folder


def _read_v2(mount: Path, place: str) -> GroupLimits:
    cores: list[float] = []
    memory: list[tuple[int, int]] = []
    for folder in _upward(mount, place):
        quota, _, period = _text(folder / "cpu.max").strip().partition(" ")
        if quota.isdigit() and period.isdigit() and int(period):
            cores.append(int(quota) / int(period))
        limit = _number(folder / "memory.max")
        if limit is not None:
            memory.append((limit, _held(folder / "memory.current", folder / "memory.stat", "inactive_file")))
    return _tightest(cores, memory)


def _read_cpu_v1(mount: Path, place: str) -> list[float]:
    cores = []
    for folder in _upward(_mount_v1(mount, "cpu"), place):
        quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
        if quota and period and quota > 0:
            cores.append(quota / period)
    return cores


def _read_memory_v1(mount: Path, place: str) -> list[tuple[int, int]]:
    found = []
    for folder in _upward(_mount_v1(mount, "memory"), place):
        limit = _number(folder / "memory.limit_in_bytes")
        if limit is not None and limit < _NO_LIMIT:
            used = _held(folder / "memory.usage_in_bytes", folder / "memory.stat", "total_inactive_file")
            found.append((limit, used))
    return found


def _mount_v1(mount: Path, controller: str) -> Path:
    """Return the controller's folder: `cpu`, or one it shares, such as `cpu,cpuacct`."""
    plain = mount / controller
    if plain.is_dir() or not mount.is_dir():
        return plain
    return next((one for one in sorted(mount.iterdir()) if controller in one.name.split(",")), plain)


def _held(usage: Path, stat: Path, cache: str) -> int:
    """Return memory in use without the file cache; a group whose use is not reported leaves its whole limit."""
    used = _number(usage)
    if used is None:
        return 0
    for line in _text(stat).splitlines():
        key, _, value = line.partition(" ")
        if key == cache and value.isdigit():
            return max(0, used - int(value))
    return used


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.removeprefix("-").isdigit() else None


def _text(path: Path) -> str:
    """Return a file's text; a file that is absent or closed to us says nothing."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
