"""How fast a foreign run goes and how long it still takes, from its steps and its own words."""

from __future__ import annotations

from collections import deque
from typing import Final

from headway.launch import Progress, ProgressReader
from headway.messages import say
from headway.units import count, duration

_WINDOW_S: Final = 60.0


class Pace:
    """Follows the first rank's lines for totals and losses, and steps from whoever sees them."""

    def __init__(self) -> None:
        self._reader = ProgressReader()
        self._told: Progress | None = None
        self._steps: deque[tuple[float, int]] = deque()
        self._total: int | None = None

    def read(self, line: bytes) -> None:
        """Take a line, or the state of a bar."""
        self._told = self._reader.feed(line) or self._told

    def step(self, step: int, now: float) -> None:
        """Take the steps finished by now; a restart begins anew.

        Where the lines tell an end, their own count is taken: it may be one of samples or epochs, not of steps.
        """
        told = self._told
        if told is not None and told.total is not None:
            if told.total != self._total and told.step != step:
                self._steps.clear()
            step, self._total = told.step, told.total
        if self._steps and step < self._steps[-1][1]:
            self._steps.clear()
        if not self._steps or step > self._steps[-1][1]:
            self._steps.append((now, step))
        while len(self._steps) > 2 and self._steps[0][0] < now - _WINDOW_S:
            self._steps.popleft()

    @property
    def rate_s(self) -> float | None:
        """Steps a second over the last minute."""
        if len(self._steps) < 2:
            return None
        (first_at, first), (last_at, last) = self._steps[0], self._steps[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else None

    def left_s(self) -> float | None:
        """Seconds until the last step; None: the lines do not say how many there are."""
        total, rate = self._told.total if self._told else None, self.rate_s
        if total is None or not rate or not self._steps:
            return None
        return max(0, total - self._steps[-1][1]) / rate

    def text(self) -> str | None:
        """Return it in words, or None before anything has moved."""
        rate = self.rate_s
        if rate is None:
            return None
        total = self._told.total if self._told else None
        done = count(self._steps[-1][1])
        loss = self._told.loss if self._told else None
        return say(
            "run/progress",
            step=done if total is None else f"{done}/{count(total)}",
            loss="n/a" if loss is None else f"{loss:.4g}",
            rate=f"{rate:.3g}",
            left=duration(self.left_s()),
        )
