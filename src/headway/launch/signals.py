"""Signals as ordinary input of the supervisor's loop."""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType
from typing import Final

POLITE_STOP: Final = signal.SIGRTMIN + 12
"""From `headway stop`: ask the program with whatever signal it has a handler for."""
_CAUGHT: Final = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP),
    *(signal.SIGUSR1, signal.SIGUSR2, POLITE_STOP),
)


class SignalInbox:
    """While open, the stop signals only make `fd` readable. Open it in the main thread."""

    def __init__(self) -> None:
        self.fd, self._write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._before = {signum: signal.getsignal(signum) for signum in _CAUGHT}
        self._wakeup_before = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        for signum in _CAUGHT:
            # nohup and its like have set SIGHUP to be ignored, and that is to stay so.
            if not (signum == signal.SIGHUP and self._before[signum] == signal.SIG_IGN):
                signal.signal(signum, _note)

    def __enter__(self) -> SignalInbox:
        return self

    def __exit__(self, *_: object) -> None:
        for signum, before in self._before.items():
            # None: set by something other than Python, which only that can put back.
            if before is not None:
                signal.signal(signum, before)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self.fd)
        os.close(self._write_fd)

    def read(self) -> list[int]:
        """Return the signals that arrived, in order."""
        with contextlib.suppress(BlockingIOError):
            return [signum for signum in os.read(self.fd, 4096) if signum in _CAUGHT]
        return []


def _note(signum: int, frame: FrameType | None) -> None:
    """Only wake the loop: the wakeup descriptor has the number."""
