"""Where the time of a step goes, and the word to the outside that the rank is alive. Both cost about a microsecond."""

from __future__ import annotations

import resource
import time
from collections import deque

import torch

from headway.telemetry import PHASES, HeartbeatWriter

DATA, FORWARD, BACKWARD, OPTIMIZER, EVAL, SAVE, STOPPING, ENDED = (
    PHASES.index(name) for name in ("data", "forward", "backward", "optimizer", "eval", "save", "stopping", "ended")
)
COMM = len(PHASES)
"""The wait at the end of backward; on the heartbeat it is still backward."""
_PARTS = (DATA, FORWARD, BACKWARD, COMM, OPTIMIZER, SAVE, EVAL)
Parts = tuple[float, float, float, float, float, float, float]
"""Seconds of data, forward, backward, comm, optimizer, save and eval."""

_SPLIT_EVERY = 20
"""On a GPU the host runs ahead; one step in this many waits at each phase so that the split is true."""
_RATE_STEPS = 20
_MEMORY_EVERY_S = 1.0


class Meter:
    """A stop-watch over the phases of a step that keeps the heartbeat going.

    Time between steps (a save, a validation) is charged to the step that follows it.
    """

    def __init__(self, beat: HeartbeatWriter, device: torch.device) -> None:
        self._beat, self._device = beat, device
        self._is_cuda = device.type == "cuda"
        self._is_split_true = not self._is_cuda
        self._recent: deque[tuple[float, int]] = deque(maxlen=_RATE_STEPS + 1)
        self.memory_bytes: int | None = None
        self._memory_read = -_MEMORY_EVERY_S
        self.restart()

    def restart(self) -> None:
        """Forget the time up to now: training begins here."""
        self._spent = [0.0] * (COMM + 1)
        self._phase = DATA
        self._started = self._last = time.perf_counter()

    def start_step(self, step: int) -> None:
        """Begin a step."""
        self._is_split_true = not self._is_cuda or step % _SPLIT_EVERY == 0
        self.enter(DATA)

    def enter(self, phase: int) -> None:
        """Charge the time since the last call to the phase that ends here."""
        if self._is_cuda and self._is_split_true:
            torch.cuda.synchronize(self._device)
        now = time.perf_counter()
        self._spent[self._phase] += now - self._last
        self._last, self._phase = now, phase
        if phase != COMM:
            self._beat.beat(phase)

    def end_step(self, step: int, samples: int, loss: float, lr: float) -> tuple[float, Parts]:
        """Say that a step is finished; return its duration and how it splits.

        On a GPU the host cannot tell the phases of most steps apart, and they are 0; saves and validations it can.
        """
        now = time.perf_counter()
        spent, took = self._spent, now - self._started
        spent[self._phase] += now - self._last
        self._spent, self._started, self._last = [0.0] * (COMM + 1), now, now
        self._recent.append((now, samples))
        first, had = self._recent[0]
        self._beat.beat(DATA, step, samples, loss, lr, (samples - had) / (now - first) if now > first else 0.0)
        if now - self._memory_read > _MEMORY_EVERY_S:
            self.memory_bytes, self._memory_read = self._read_memory(), now
        if not self._is_split_true:
            return took, (0.0, 0.0, 0.0, 0.0, 0.0, spent[SAVE], spent[EVAL])
        return took, tuple(spent[part] for part in _PARTS)  # type: ignore[return-value]  # seven, as Parts

    def pause(self) -> None:
        """Leave what came just now (a validation) out of the speed."""
        self._recent.clear()

    def say(self, phase: int) -> None:
        """Name a phase outside of training."""
        self._beat.beat(phase)

    def _read_memory(self) -> int:
        """Return the most memory held so far: on the device, or by the process."""
        if self._is_cuda:
            return torch.cuda.max_memory_allocated(self._device)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
