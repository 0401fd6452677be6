"""The memory that outlives the ranks, as whoever starts them makes it. What is in it: checkpoint/in_memory.py."""

from __future__ import annotations

import os
from typing import Final

REGION_BYTES: Final = 1 << 40
"""Of the file, for each rank; what is not written to takes no memory."""


def make_file(world_size: int) -> int:
    """Return the open file that outlives the ranks, for whoever starts them.

    Raises:
        OSError: the system has none, or limits the size of files (`ulimit -f`).
    """
    file = os.memfd_create("headway-last-step", os.MFD_CLOEXEC)
    try:
        os.ftruncate(file, world_size * REGION_BYTES)
    except OSError:
        os.close(file)
        raise
    return file
