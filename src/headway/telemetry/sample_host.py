"""What this machine and the processes of a run use: read from /proc, a few files a reading, no library.

Every figure is of the time between two readings. A container shows its host here; its own limits are in the plan.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_PROC: Final = Path("/proc")
_TICK_HZ: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_STALLS: Final = {"stall_cpu": "cpu", "stall_mem": "memory", "stall_io": "io"}


@dataclass(slots=True)
class _Used:
    """What one process has used since it was started."""

    cpu_s: float
    rss_bytes: int
    io_bytes: tuple[int, int]
    own_bytes: int
    """The part of `rss_bytes` that no file or shared memory backs."""


@dataclass(slots=True)
class HostSampler:
    """Reads the host, the whole tree below a process, and the tree of every rank."""

    root_pid: int
    """The supervisor: everything of the run is below it."""
    place: Path
    """Whose disk is asked for its room."""
    proc: Path = _PROC
    _at: float | None = None
    _busy: tuple[float, float] | None = None
    _net: tuple[int, int] | None = None
    _used: dict[int, _Used] = field(default_factory=dict)

    def about(self) -> dict[str, Any]:
        """Return what does not change."""
        memory = self._meminfo()
        return {"cores": len(os.sched_getaffinity(0)), "mem": memory.get("MemTotal"), "swap": memory.get("SwapTotal")}

    def read(self, now: float, ranks: Sequence[int]) -> dict[str, Any]:
        """Return `host`, `job` and `ranks` of the time since the last reading.

        Args:
            now: monotonic seconds.
            ranks: pid of every rank; 0 for one that is not there.
        """
        spent_s = None if self._at is None else max(1e-3, now - self._at)
        trees = self._trees(ranks)
        used = {pid: found for pid in trees if (found := self._read_process(pid)) is not None}
        host = self._host(spent_s)
        job = self._sum(list(used), used, spent_s, with_io=True)
        by_rank = []
        for rank, pid in enumerate(ranks):
            own = [one for one, leader in trees.items() if leader == pid and one in used]
            if pid and own:
                by_rank.append({"r": rank, **self._sum(own, used, spent_s)})
        self._at, self._used = now, used
        return {"host": host, "job": job, "ranks": by_rank}

    def read_host(self, now: float) -> dict[str, Any]:
        """Return the host alone."""
        spent_s = None if self._at is None else max(1e-3, now - self._at)
        self._at = now
        return self._host(spent_s)

    @property
    def pids(self) -> Collection[int]:
        """Every process of the run at the last reading."""
        return self._used.keys()

    def _trees(self, ranks: Sequence[int]) -> dict[int, int]:
        """Return every process of the run, ourselves apart, and the rank's pid that it belongs to, 0 for none."""
        found: dict[int, int] = {self.root_pid: 0}
        queue = deque([self.root_pid])
        leaders, own = set(ranks) - {0}, os.getpid()
        while queue:
            parent = queue.popleft()
            for child in self._children(parent):
                if child not in found and child != own:
                    found[child] = child if child in leaders else found[parent]
                    queue.append(child)
        return found

    def _children(self, pid: int) -> list[int]:
        found: list[int] = []
        try:
            threads = os.listdir(self.proc / str(pid) / "task")
        except OSError:
            return found
        for thread in threads:
            found += [int(one) for one in self._text(f"{pid}/task/{thread}/children").split() if one.isdigit()]
        return found

    def _read_process(self, pid: int) -> _Used | None:
        # The name in brackets may hold spaces and brackets of its own.
        fields = self._text(f"{pid}/stat").rpartition(")")[2].split()
        if len(fields) < 22:
            return None
        counts = {}
        for line in self._text(f"{pid}/io").splitlines():
            name, _, value = line.partition(":")
            counts[name] = int(value) if value.strip().isdigit() else 0
        cpu_s = (int(fields[11]) + int(fields[12])) / _TICK_HZ
        io = (counts.get("read_bytes", 0), counts.get("write_bytes", 0))
        pages = self._text(f"{pid}/statm").split()
        own = int(pages[1]) - int(pages[2]) if len(pages) > 2 else 0
        return _Used(cpu_s, int(fields[21]) * _PAGE_BYTES, io, own * _PAGE_BYTES)

    def _sum(
        self, pids: Sequence[int], used: dict[int, _Used], spent_s: float | None, *, with_io: bool = False
    ) -> dict[str, Any]:
        found: dict[str, Any] = {
            "mem": sum(used[pid].rss_bytes for pid in pids),
            "own": sum(used[pid].own_bytes for pid in pids),
            "num": len(pids),
        }
        if spent_s is None:
            return found
        # A process that was not there before has used all it has used since then.
        before = {pid: self._used.get(pid) or _Used(0.0, 0, (0, 0), 0) for pid in pids}
        cpu_s = sum(max(0.0, used[pid].cpu_s - before[pid].cpu_s) for pid in pids)
        found["cpu"] = round(cpu_s / spent_s, 3)
        for at, name in enumerate(("read", "write") if with_io else ()):
            moved = sum(max(0, used[pid].io_bytes[at] - before[pid].io_bytes[at]) for pid in pids)
            found[name] = round(moved / spent_s)
        return found

    def _host(self, spent_s: float | None) -> dict[str, Any]:
        memory = self._meminfo()
        total, free = memory.get("MemTotal"), memory.get("MemAvailable")
        found: dict[str, Any] = {"mem": None if total is None or free is None else total - free}
        if memory.get("SwapTotal"):
            found["swap"] = memory["SwapTotal"] - memory.get("SwapFree", 0)
        try:
            disk = os.statvfs(self.place)
            found["disk_free"] = disk.f_bavail * disk.f_frsize
        except OSError:
            found["disk_free"] = None
        for name, kind in _STALLS.items():
            share = self._text(f"pressure/{kind}").partition("avg10=")[2].partition(" ")[0]
            if share:
                found[name] = float(share)
        found.update(self._host_rates(spent_s))
        return found

    def _host_rates(self, spent_s: float | None) -> dict[str, Any]:
        ticks = [int(one) for one in self._text("stat").partition("\n")[0].split()[1:9]]
        busy = (float(sum(ticks) - sum(ticks[3:5])), float(sum(ticks))) if len(ticks) >= 5 else None
        net = self._network()
        found: dict[str, Any] = {}
        if busy and self._busy and busy[1] > self._busy[1]:
            found["cpu"] = round(100 * (busy[0] - self._busy[0]) / (busy[1] - self._busy[1]), 1)
        if net and self._net and spent_s:
            moved = (round(max(0, now - before) / spent_s) for now, before in zip(net, self._net, strict=True))
            found["net_rx"], found["net_tx"] = moved
        self._busy, self._net = busy, net
        return found

    def _network(self) -> tuple[int, int] | None:
        received = sent = 0
        for line in self._text("net/dev").splitlines()[2:]:
            name, _, rest = line.partition(":")
            numbers = rest.split()
            if name.strip() != "lo" and len(numbers) >= 9:
                received, sent = received + int(numbers[0]), sent + int(numbers[8])
        return received, sent

    def _meminfo(self) -> dict[str, int]:
        found = {}
        for line in self._text("meminfo").splitlines():
            name, _, rest = line.partition(":")
            words = rest.split()
            if name in ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree") and words:
                found[name] = int(words[0]) * 1024
        return found

    def _text(self, name: str) -> str:
        """Return a file of /proc; one that is gone, or of another user, says nothing."""
        try:
            with open(self.proc / name, "rb") as file:
                return file.read().decode("ascii", "replace")
        except OSError:
            return ""
