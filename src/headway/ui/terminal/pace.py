"""How fast a run goes and how long it still takes: by the heartbeats of our engine, or by a line's steps and words."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from headway.launch import Progress, ProgressReader
from headway.messages import say
from headway.telemetry import Beat
from headway.units import count, duration

NOT_STEPS: Final = frozenset({"start", "restore", "eval", "save"})
"""Phases whose time is not the steps' own."""
_RECENT_STEPS: Final = 20
_WINDOW_S: Final = 60.0


class Pace:
    """Seconds a step over the last twenty steps, validation, saving and starting left out."""

    def __init__(self) -> None:
        self._own_s = 0.0
        self._seen_s: float | None = None
        self._attempt = -1
        self._marks: deque[tuple[int, int, float]] = deque()

    def see(self, beat: Beat, now_s: float) -> None:
        """Take in where the slowest rank is."""
        if beat.attempt != self._attempt or (self._marks and beat.step < self._marks[-1][0]):
            self._attempt = beat.attempt
            self._marks.clear()
            self._seen_s = None
        if self._seen_s is not None and beat.phase not in NOT_STEPS:
            self._own_s += max(0.0, now_s - self._seen_s)
        self._seen_s = now_s
        if self._marks and self._marks[-1][0] == 0 and beat.step > 0:
            # A resumed rank says 0 until its first step is finished; the way from 0 to there was not trained now.
            self._marks.clear()
        if not self._marks or beat.step > self._marks[-1][0]:
            self._marks.append((beat.step, beat.samples, self._own_s))
        while len(self._marks) > 2 and self._marks[-1][0] - self._marks[1][0] >= _RECENT_STEPS:
            self._marks.popleft()

    def step_s(self) -> float | None:
        """Return seconds per step, or None before two marks."""
        return self._ratio(lambda a, b: (b[2] - a[2]) / (b[0] - a[0]))

    def rate_samples_s(self) -> float | None:
        """Return samples per second, or None before two marks."""
        return self._ratio(lambda a, b: (b[1] - a[1]) / (b[2] - a[2]))

    def _ratio(self, of: Callable[[tuple[int, int, float], tuple[int, int, float]], float]) -> float | None:
        if len(self._marks) < 2 or self._marks[-1][2] <= self._marks[0][2]:
            return None
        return of(self._marks[0], self._marks[-1])


class LinePace:
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
        """Take the steps finished by now. Time is counted from the first finished one: before it, libraries were
        imported and data was read.

        Where the lines tell an end, their own count is taken: it may be one of samples or epochs, not of steps.
        """
        told = self._told
        if told is not None and told.total is not None:
            if told.total != self._total and told.step != step:
                self._steps.clear()
            step, self._total = told.step, told.total
        if self._steps and step < self._steps[-1][1]:
            self._steps.clear()
        if step > (self._steps[-1][1] if self._steps else 0):
            self._steps.append((now, step))
        while len(self._steps) > 2 and self._steps[0][0] < now - _WINDOW_S:
            self._steps.popleft()

    def restart(self) -> None:
        """Forget the attempt before: the time between two attempts is nobody's step."""
        self._steps.clear()

    @property
    def rate_s(self) -> float | None:
        """Steps per second over the last minute."""
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
        told, left_s = self._told, self.left_s()
        total = told.total if told else None
        done = count(self._steps[-1][1])
        parts = [say("run/progress-step", step=done if total is None else f"{done}/{count(total)}")]
        if told is not None and told.loss is not None:
            parts.append(f"loss {told.loss:.4g}")
        parts.append(say("run/progress-rate", rate=f"{rate:.3g}"))
        if left_s is not None:
            parts.append(say("run/progress-left", left=duration(left_s)))
        return say("run/progress-comma").join(parts)
