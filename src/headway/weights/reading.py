"""Opening and hashing checkpoint files: no symlink is followed, no pipe is waited for, a bad sector is an error.

Files are read, not mapped: a bad sector or a file cut short under a mapping ends the process with SIGBUS, under
`read` it is an error that names the file and lets an older checkpoint be used.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from headway.errors import CheckpointError
from headway.weights.layout import Header, header_bytes, parse_header
from headway.weights.stream import hash_stream
from headway.weights.strict import shown

_READ_BYTES: Final = 8 << 20


@contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """Open a checkpoint's folder; a symlink or a file in its place is refused."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as err:
        raise _refusal(err, path) from err
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def open_inside(folder: int, name: str, *, where: Path) -> Iterator[int]:
    """Open a plain file of an open folder; `where` is the folder's name for errors."""
    path = where / shown(name)
    try:
        # Without O_NONBLOCK a planted pipe would be waited for.
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as err:
        raise _refusal(err, path) from err
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise CheckpointError("checkpoint/not-a-file", path=path)
        yield fd
    except OSError as err:
        raise _refusal(err, path) from err
    finally:
        os.close(fd)


def read_small(folder: int, name: str, *, where: Path, cap: int) -> bytes:
    """Return a whole file of at most `cap` bytes; a larger one is refused before it is read."""
    with open_inside(folder, name, where=where) as fd:
        have = os.fstat(fd).st_size
        if have > cap:
            raise CheckpointError("checkpoint/manifest-large", path=where / name, have=have, cap=cap)
        return read_at(fd, 0, have, where=where / name)


def read_at(fd: int, start: int, length: int, *, where: Path) -> bytes:
    """Return exactly `length` bytes from `start`."""
    data = bytearray(length)
    fill_from(fd, start, memoryview(data), where=where)
    return bytes(data)


def fill_from(fd: int, start: int, into: memoryview, *, where: Path) -> None:
    """Fill a buffer from a place in a file; a file that ends early is refused."""
    done = 0
    while done < len(into):
        try:
            got = os.preadv(fd, [into[done : done + _READ_BYTES]], start + done)
        except OSError as err:
            raise _refusal(err, where) from err
        if not got:
            raise CheckpointError("checkpoint/wrong-size", path=where, have=start + done, want=start + len(into))
        done += got


def read_header(fd: int, *, where: Path) -> Header:
    """Return a shard's checked header."""
    file_bytes = os.fstat(fd).st_size
    first = read_at(fd, 0, min(8, file_bytes), where=where)
    length = header_bytes(first, where=str(where), file_bytes=file_bytes)
    return parse_header(read_at(fd, 0, length, where=where), where=str(where), file_bytes=file_bytes)


def hash_file(fd: int, *, threads: int, is_fresh: bool) -> tuple[int, str]:
    """Return bytes and hash of a file; `is_fresh` asks for the disk's copy, not the page cache's."""
    if sys.platform == "linux":
        if is_fresh:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    chunk_bytes = min(_READ_BYTES, max(1, os.fstat(fd).st_size))
    return hash_stream(lambda at, into: os.preadv(fd, [into], at), chunk_bytes=chunk_bytes, threads=threads)


def _refusal(err: OSError, path: Path) -> CheckpointError:
    if err.errno in (errno.ELOOP, errno.ENOTDIR):
        return CheckpointError("checkpoint/not-a-file", path=path)
    if err.errno == errno.ENOENT:
        return CheckpointError("checkpoint/missing-file", path=path)
    return CheckpointError("checkpoint/unreadable", path=path, why=err.strerror or str(err))
