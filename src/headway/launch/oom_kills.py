"""How often the kernel has killed for memory: in our control group where it counts there, else on this machine."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_MOST_GROUPS: Final = 256
_LOOK_S: Final = 1.0
_WINDOW_S: Final = 5.0
"""From the kernel's decision to the end of a process: giving back hundreds of gigabytes takes seconds."""


class OomCount:
    """The count of the last seconds: a kill of somebody else, an hour ago, says nothing about a rank that ends now."""

    def __init__(self, now_s: float, count: Callable[[], int | None] | None = None) -> None:
        self._count = count or count_oom_kills
        self._seen: deque[tuple[float, int]] = deque()
        self.look(now_s)

    def look(self, now_s: float) -> None:
        """Take the count about once a second, and forget what is older than the window."""
        if self._seen and now_s < self._seen[-1][0] + _LOOK_S:
            return
        found = self._count()
        if found is not None:
            self._seen.append((now_s, found))
        self._forget(now_s)

    def has_grown(self, now_s: float) -> bool:
        """Say whether the kernel has killed within the window."""
        self._forget(now_s)
        found = self._count()
        return found is not None and bool(self._seen) and found > self._seen[0][1]

    def _forget(self, now_s: float) -> None:
        while len(self._seen) > 1 and self._seen[1][0] <= now_s - _WINDOW_S:
            self._seen.popleft()


def count_oom_kills(root: Path = Path("/")) -> int | None:
    """Return the count so far; None where nobody counts."""
    for folder, name in _groups(root):
        counts = [_read(path) for path in _files(folder, name)]
        known = [count for count in counts if count is not None]
        if known:
            return sum(known)
    return _read(root / "proc/vmstat")


def _groups(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield where our group may be seen, the surest first, and the file that counts there."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            found.append((root / "sys/fs/cgroup/memory", path.lstrip("/"), "memory.oom_control"))
        if not controllers:
            found.append((root / "sys/fs/cgroup", path.lstrip("/"), "memory.events"))
    for mount, place, name in found:
        yield mount / place, name
    # Inside a container the path may be the host's, while the mount shows our own group as its root.
    for mount, _, name in found:
        yield mount, name


def _files(folder: Path, name: str) -> list[Path]:
    """Return the files to add up: v2 counts what happens below a group in the group itself, v1 does not."""
    own = folder / name
    if name == "memory.events" or not own.is_file():
        return [own]
    below = (path for path in folder.rglob(name) if path != own)
    return [own, *(path for _, path in zip(range(_MOST_GROUPS), below, strict=False))]


def _read(path: Path) -> int | None:
    try:
        found = re.search(r"^oom_kill (\d+)$", path.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None
