"""A file that a user names, read so that nothing it turns out to be can make us wait or fill the memory."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

_MOST_BYTES: Final = 256 << 20


def read_file(path: Path, most_bytes: int = _MOST_BYTES) -> bytes:
    """Return what is in a regular file.

    Raises:
        OSError: there is none, it may not be read, it is something else (a pipe, a device, `/proc/kmsg`), or too large.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        try:
            data = file.read(most_bytes + 1)
        except BlockingIOError as err:
            raise OSError(errno.EINVAL, "not a regular file", str(path)) from err
    if data is None:  # what a file says that has no end and nothing to say just now
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes >> 20} MiB", str(path))
    return data
