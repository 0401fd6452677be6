"""A small disk, so that a full one can be had without filling the user's."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_BYTES: Final = 300 << 20
"""A little more than a start asks for; it is in memory only while it is full."""
_MOUNT_S: Final = 10


class SmallDisk:
    """A file system of its own where this user may mount one; otherwise a limit on what a process may write."""

    def __init__(self, folder: Path, *, wanted: bool) -> None:
        self.folder, self._wanted = folder, wanted
        self.is_real = False
        """It is a file system that runs full, not only a limit."""

    def __enter__(self) -> SmallDisk:
        self.folder.mkdir(parents=True)
        if self._wanted and os.geteuid() == 0:
            command = ["mount", "-t", "tmpfs", "-o", f"size={_BYTES},mode=0700", "headway-rehearse", str(self.folder)]
            self.is_real = _succeeds(command)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_real:
            # Lazily: a process that ends late must not leave a mount behind.
            _succeeds(["umount", "-l", str(self.folder)])

    @contextmanager
    def full(self, pid: int) -> Iterator[None]:
        """While open nothing more can be written: by anybody, or by this process where the disk is not our own."""
        if not self.is_real:
            before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, before[1]))
            try:
                yield
            finally:
                with contextlib.suppress(ProcessLookupError):
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
            return
        filler = self.folder / "filler"
        try:
            with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                while file.write(bytes(1 << 20)):
                    pass
            yield
        finally:
            filler.unlink(missing_ok=True)

    def rescue(self, place: Path) -> None:
        """Copy what is on a disk that is about to go."""
        if self.is_real:
            shutil.copytree(self.folder, place, dirs_exist_ok=True, symlinks=True)


def _succeeds(command: list[str]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_MOUNT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
