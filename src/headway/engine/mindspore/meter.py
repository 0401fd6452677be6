"""Where the time of a step goes, and the word to the outside that the rank is alive."""

from __future__ import annotations

import resource
import time
from collections import deque

from headway.telemetry import PHASES, HeartbeatWriter

DATA, FORWARD, BACKWARD, OPTIMIZER, EVAL, SAVE, STOPPING, ENDED = (
    PHASES.index(name) for name in ("data", "forward", "backward", "optimizer", "eval", "save", "stopping", "ended")
)
COMM = len(PHASES)
_PARTS = (DATA, FORWARD, BACKWARD, COMM, OPTIMIZER, SAVE, EVAL)
Parts = tuple[float, float, float, float, float, float, float]
"""Seconds of data, forward, backward, comm, optimizer, save and eval."""


class Meter:
    """A stop-watch over the phases of a step. Forward and backward are one call of MindSpore, charged to backward."""

    def __init__(self, beat: HeartbeatWriter) -> None:
        self._beat = beat
        self._recent: deque[tuple[float, int]] = deque(maxlen=21)
        self._spent = [0.0] * (COMM + 1)
        self._phase = DATA
        self._started = self._last = time.perf_counter()

    def enter(self, phase: int) -> None:
        """Charge the time since the last call to the phase that ends here."""
        now = time.perf_counter()
        self._spent[self._phase] += now - self._last
        self._last, self._phase = now, phase
        if phase != COMM:
            self._beat.beat(phase)

    def end_step(self, step: int, samples: int, loss: float, lr: float) -> tuple[float, Parts]:
        """Say that a step is finished; return its duration and how it splits."""
        self.enter(DATA)
        spent, took = self._spent, self._last - self._started
        self._spent, self._started = [0.0] * (COMM + 1), self._last
        self._recent.append((self._last, samples))
        first, had = self._recent[0]
        rate = (samples - had) / (self._last - first) if self._last > first else 0.0
        self._beat.beat(DATA, step, samples, loss, lr, rate)
        return took, tuple(spent[part] for part in _PARTS)  # type: ignore[return-value]  # seven, as Parts

    def pause(self) -> None:
        """Leave what came just now out of the speed."""
        self._recent.clear()

    @property
    def memory_bytes(self) -> int:
        """Most memory the process has held."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
