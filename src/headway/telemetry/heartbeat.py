"""One page of shared memory per rank: where it is and when it last moved. Reading it needs nothing from the rank."""

from __future__ import annotations

import errno
import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.telemetry.reading import open_beneath, read_part

PHASES: Final = ("start", "restore", "data", "forward", "backward", "optimizer", "eval", "save", "stopping", "ended")
_MAGIC: Final = b"HWBEAT01"
_LAYOUT: Final = struct.Struct("<8sqqqqqqddd")
_SIZE: Final = 4096
FULL: Final = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What a rank last wrote."""

    pid: int
    attempt: int
    phase: str
    step: int
    """Optimizer steps finished."""
    samples: int
    """Samples of finished steps, all ranks."""
    monotonic_ns: int
    """When it was written, on this machine's monotonic clock."""
    loss: float
    lr: float
    rate: float
    """Samples per second over the last steps, all ranks."""


class HeartbeatWriter:
    """The rank's side of the page. `beat` costs under a microsecond and never blocks."""

    def __init__(self, path: Path, attempt: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._page = _map_page(path)
        self._pid, self._attempt = os.getpid(), attempt
        self._last = (0, 0, 0.0, 0.0, 0.0)
        self.beat(0)

    def beat(
        self,
        phase: int,
        step: int | None = None,
        samples: int = 0,
        loss: float = 0.0,
        lr: float = 0.0,
        rate: float = 0.0,
    ) -> None:
        """Say which phase begins; with a step, say that it is finished."""
        if step is not None:
            self._last = (step, samples, loss, lr, rate)
        done, seen, loss, lr, rate = self._last
        _LAYOUT.pack_into(
            self._page, 0, _MAGIC, self._pid, self._attempt, phase, done, seen, time.monotonic_ns(), loss, lr, rate
        )


def _map_page(path: Path) -> mmap.mmap:
    """Return the page, with its place on the disk taken; on a full disk one that nobody else can see."""
    try:
        fd = open_beneath(path, os.O_RDWR)
    except OSError as err:
        if err.errno in FULL:
            return mmap.mmap(-1, _SIZE)
        raise
    try:
        # A page of a file without a place of its own is given one at the first write; on a full disk that is SIGBUS.
        os.posix_fallocate(fd, 0, _SIZE)
        return mmap.mmap(fd, _SIZE)
    except OSError as err:
        if err.errno not in FULL:
            raise
        return mmap.mmap(-1, _SIZE)
    finally:
        os.close(fd)


def read_beat(path: Path) -> Beat | None:
    """Return what the rank last wrote, or None when it has written nothing yet."""
    return parse_beat(read_part(path, 0, _LAYOUT.size))


def parse_beat(whole: bytes) -> Beat | None:
    """Return what a page says, or None when nothing has been written to it yet."""
    data = whole[: _LAYOUT.size]
    if len(data) < _LAYOUT.size or not data.startswith(_MAGIC):
        return None
    _, pid, attempt, phase, step, samples, moved, loss, lr, rate = _LAYOUT.unpack(data)
    name = PHASES[phase] if 0 <= phase < len(PHASES) else "unknown"
    return Beat(
        pid=pid,
        attempt=attempt,
        phase=name,
        step=step,
        samples=samples,
        monotonic_ns=moved,
        loss=loss,
        lr=lr,
        rate=rate,
    )
