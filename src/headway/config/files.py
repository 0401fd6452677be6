"""A file that a user names, read so that nothing it turns out to be can make us wait or fill the memory."""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO
from pathlib import Path
from typing import Final

_MOST_BYTES: Final = 256 << 20


def read_file(path: Path, most_bytes: int = _MOST_BYTES) -> bytes:
    """Return what is in a regular file.

    Raises:
        OSError: there is none, it may not be read, it is something else (a pipe, a device, `/proc/kmsg`), or too large.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data = read_to_end(file, most_bytes + 1)
    if data is None:
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes >> 20} MiB", str(path))
    return data


def read_to_end(file: FileIO, most_bytes: int) -> bytes | None:
    """Return what an unbuffered file opened without blocking holds, `most_bytes` at most; None if it has no end."""
    content = bytearray()
    while len(content) < most_bytes:
        # A buffered reader would return what `/proc/kmsg` has to say just now as if that were the whole file.
        piece = file.read(most_bytes - len(content))
        if piece is None:
            return None
        if not piece:
            break
        content += piece
    return bytes(content)
