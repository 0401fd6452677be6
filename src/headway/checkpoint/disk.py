"""The calls that change a disk, behind one page, so that a test can fail or cut short the n-th of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from headway.weights.stream import DirectWriter, side_hash

CHUNK_BYTES: Final = 16 << 20
"""Bytes hashed and written at a time: small enough that other threads of a rank get their turn."""


@dataclass(frozen=True, slots=True)
class Space:
    """What a file system has left for us."""

    free_bytes: int
    free_inodes: int | None
    """None where the file system does not count them."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Size and hash of one file."""

    bytes: int
    blake3: str


class Abandoned(Exception):  # noqa: N818 - an end, not a fault
    """The writing was called off from outside; nothing is wrong with the disk."""


class Disk(Protocol):
    """Everything a save does to a disk."""

    def make_dir(self, path: Path) -> None:
        """Make a folder that must not exist."""
        ...

    def create(self, path: Path) -> int:
        """Create a file that must not exist and return its descriptor."""
        ...

    def write(self, fd: int, data: memoryview) -> int:
        """Write some of the data; return how much."""
        ...

    def sync(self, fd: int) -> None:
        """Return when the file's data are on the disk."""
        ...

    def close(self, fd: int) -> None:
        """Close a file."""
        ...

    def sync_dir(self, path: Path) -> None:
        """Return when the folder's names are on the disk."""
        ...

    def rename(self, old: Path, new: Path) -> None:
        """Rename; a file in the way is replaced."""
        ...

    def unlink(self, path: Path) -> None:
        """Remove a name that is not a folder."""
        ...

    def remove_dir(self, path: Path) -> None:
        """Remove an empty folder."""
        ...

    def space(self, path: Path) -> Space:
        """Return what is left where `path` lives."""
        ...


class RealDisk:
    """The operating system's own calls."""

    def make_dir(self, path: Path) -> None:
        """Make a folder that must not exist."""
        os.mkdir(path)

    def create(self, path: Path) -> int:
        """Create a file that must not exist and return its descriptor; a planted symlink is not followed."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)

    def write(self, fd: int, data: memoryview) -> int:
        """Write some of the data; return how much."""
        return os.write(fd, data)

    def sync(self, fd: int) -> None:
        """Return when the file's data are on the disk."""
        os.fsync(fd)

    def close(self, fd: int) -> None:
        """Close a file."""
        os.close(fd)

    def sync_dir(self, path: Path) -> None:
        """Return when the folder's names are on the disk."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, old: Path, new: Path) -> None:
        """Rename; a file in the way is replaced."""
        os.rename(old, new)

    def unlink(self, path: Path) -> None:
        """Remove a name that is not a folder."""
        os.unlink(path)

    def remove_dir(self, path: Path) -> None:
        """Remove an empty folder."""
        os.rmdir(path)

    def space(self, path: Path) -> Space:
        """Return what is left where `path` lives."""
        found = os.statvfs(path)
        return Space(found.f_bavail * found.f_frsize, found.f_favail if found.f_files else None)


def write_file(
    disk: Disk, path: Path, parts: Iterable[memoryview], *, keep_going: Callable[[], bool] = lambda: True
) -> FileEntry:
    """Write a new file, durable when this returns; the hash is of what memory holds, not of what the disk took."""
    written = 0
    fd = disk.create(path)
    try:
        writer = DirectWriter(fd, disk.write)
        with side_hash() as hasher:
            for part in parts:
                for start in range(0, len(part), CHUNK_BYTES):
                    if not keep_going():
                        raise Abandoned
                    chunk = part[start : start + CHUNK_BYTES]
                    hasher.add(chunk)
                    writer.write(chunk)
                written += len(part)
        disk.sync(fd)
    finally:
        disk.close(fd)
    return FileEntry(written, hasher.hexdigest())


def remove_tree(disk: Disk, path: Path) -> None:
    """Remove a folder and what is in it; symlinks are removed, never followed."""
    with os.scandir(path) as entries:
        inside = list(entries)
    for entry in inside:
        if entry.is_dir(follow_symlinks=False):
            remove_tree(disk, Path(entry.path))
        else:
            disk.unlink(Path(entry.path))
    disk.remove_dir(path)
