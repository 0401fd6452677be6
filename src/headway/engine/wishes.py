"""What a rank is asked for from outside, by signals. The handlers only note it; the loop acts at the end of a step."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from headway.process import STACKS_SIGNAL


def listen_for_stop() -> Callable[[], bool]:
    """Take SIGTERM as the wish to save and stop; Ctrl-C is the supervisor's to hear."""
    wanted: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: wanted.append(1))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return lambda: bool(wanted)


def listen_for_save() -> Callable[[], float]:
    """Take SIGUSR1 and SIGUSR2 as the wish for a checkpoint now; the answer is when it was last asked for, or 0."""
    asked_at = [0.0]

    def note(*_: object) -> None:
        asked_at[0] = time.monotonic()

    for signum in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(signum, note)
    return lambda: asked_at[0]


def listen_for_stacks(folder: Path) -> None:
    """Write the stacks of all threads to `stacks` when the supervisor asks: it finds out by them which rank hangs."""
    folder.mkdir(parents=True, exist_ok=True)
    # A number, for faulthandler writes to it to the end: a file object that nobody holds would be closed under it.
    file = os.open(folder / "stacks", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    faulthandler.register(STACKS_SIGNAL, file=file, all_threads=True)
