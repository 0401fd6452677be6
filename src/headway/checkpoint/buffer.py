"""The host memory a save is copied into: one piece, page-aligned, and ready before the first save needs it.

Fresh memory is given out page by page at its first touch, which made the first save wait several times as long
as the others. So it is touched beforehand, in a thread, while the first steps are taken.
"""

from __future__ import annotations

import mmap
import sys
import threading
from collections.abc import Callable
from typing import Final

_TOUCHED_BYTES: Final = 32 << 20
"""Touched at a time: a save that comes meanwhile waits for no more than this."""
_HUGE_PAGES: Final = 14
"""Linux's MADV_HUGEPAGE: 512 times fewer page faults."""
_WIPE_ON_FORK: Final = 18
"""Linux's MADV_WIPEONFORK: a loader process forked later has no need for the contents, and without this every save
would first copy the pages that it shares."""


class HostBuffer:
    """Memory of a fixed size, kept from one save to the next."""

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        self._map = mmap.mmap(-1, max(1, num_bytes), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._advise(_HUGE_PAGES)
        self._advise(_WIPE_ON_FORK)
        self._is_wanted = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def data(self) -> memoryview:
        """The memory, all of it touched or not."""
        return memoryview(self._map)[: self.num_bytes]

    def warm_up(self, touch: Callable[[memoryview], None]) -> None:
        """Have every page touched by a thread, until `settle` is called; what is written meanwhile would be lost."""
        self._is_wanted.clear()
        # Not a daemon: the interpreter ends those inside a kernel of the framework, which aborts the process (SIGABRT).
        self._thread = threading.Thread(target=self._touch, args=(touch,), name="save-buffer")
        self._thread.start()

    @property
    def is_warm(self) -> bool:
        """Whether nothing is being touched any more."""
        return self._thread is None or not self._thread.is_alive()

    def settle(self) -> memoryview:
        """End the touching, finished or not, and return the memory."""
        self._is_wanted.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        return self.data

    def _touch(self, touch: Callable[[memoryview], None]) -> None:
        for start in range(0, self.num_bytes, _TOUCHED_BYTES):
            if self._is_wanted.is_set() or not threading.main_thread().is_alive():
                return
            touch(self.data[start : start + _TOUCHED_BYTES])

    def _advise(self, advice: int) -> None:
        if sys.platform != "linux":
            return
        try:
            self._map.madvise(advice)
        except OSError:
            return  # a kernel without it; only slower
