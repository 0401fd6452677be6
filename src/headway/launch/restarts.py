"""Whether a run gets anywhere: restarts that gain nothing, and ranks that have not moved for long."""

from __future__ import annotations

import statistics
from collections import deque
from typing import Final

from headway.telemetry import Beat

_QUIET_S: Final = 60.0
_QUIET_STEPS: Final = 10
_WINDOW: Final = 32
_ASLEEP_NS: Final = 10_000_000_000
"""The supervisor looks ten times per second; after a longer gap it was stopped itself."""
_WASTED: Final = 3
_PREEMPTIONS: Final = 20
_PREEMPTED_WAIT_S: Final = 2.0


class RestartBudget:
    """Counts restarts in a row that reached no later step and committed no newer checkpoint.

    `is_total`: the limit is on all restarts, as launchers mean it, and three in a row without progress end the run
    before. Preemptions are nobody's fault: they have a budget of their own and waste nothing.
    """

    def __init__(self, limit: int, committed: int | None, *, is_total: bool = False) -> None:
        self.limit = limit
        self.wasted = 0
        self._is_total = is_total
        self._used = self._preempted = 0
        self._committed = -1 if committed is None else committed
        self._step = 0
        self._is_first = True
        self._was_preempted = False

    def spend(self, step: int, committed: int | None, *, is_preempted: bool = False) -> bool:
        """Note where the attempt that just failed had come to; say whether another one is allowed."""
        saved = -1 if committed is None else committed
        if step > self._step or saved > self._committed:
            self.wasted = 0
        elif not self._is_first and not is_preempted:
            self.wasted += 1
        self._is_first, self._was_preempted = False, is_preempted
        self._step, self._committed = max(step, self._step), max(saved, self._committed)
        if is_preempted:
            self._preempted += 1
            return self.limit > 0 and self._preempted <= _PREEMPTIONS
        if not self._is_total:
            return self.wasted < self.limit
        is_allowed = self._used < self.limit and self.wasted < _WASTED
        self._used += is_allowed
        return is_allowed

    def wait_s(self) -> float:
        """Return how long to wait before the next attempt: not at all after progress, then 1, 2, 4 … 30 s."""
        if self._was_preempted:
            # Whoever preempts ends ranks one by one; the supervisor's own turn may come next.
            return _PREEMPTED_WAIT_S
        return min(30.0, 2.0 ** (self.wasted - 1)) if self.wasted else 0.0


class StallWatch:
    """Notices when no rank's heartbeat has moved for much longer than a step usually takes."""

    def __init__(self) -> None:
        self._step_s: deque[float] = deque(maxlen=_WINDOW)
        self._last = (0, 0)
        self._told_at = 0
        self._looked_ns = self._awake_ns = self._heard_ns = 0

    def hear(self, now_ns: int) -> None:
        """Note that a rank has printed something: before its first step that is all it can be known by."""
        self._heard_ns = now_ns

    def look(self, beats: list[Beat | None], now_ns: int) -> float | None:
        """Return the seconds of silence when they are worth a warning, once a silence."""
        known = [beat for beat in beats if beat is not None]
        if not known:
            return None
        step, moved = max(beat.step for beat in known), max(beat.monotonic_ns for beat in known)
        before_step, before_moved = self._last
        if step != before_step:
            if step > before_step and before_moved:
                self._step_s.append((moved - before_moved) / 1e9 / (step - before_step))
            self._last = (step, moved)
        # Where we ourselves were stopped (Ctrl-Z, a suspended machine), the ranks were too, and nobody was quiet.
        if now_ns - self._looked_ns > _ASLEEP_NS:
            self._awake_ns = now_ns
        self._looked_ns = now_ns
        quiet_s = (now_ns - max(moved, self._awake_ns, self._heard_ns if step == 0 else 0)) / 1e9
        usual_s = statistics.median(self._step_s) if self._step_s else 0.0
        if quiet_s <= max(_QUIET_S, _QUIET_STEPS * usual_s) or self._told_at == moved:
            return None
        self._told_at = moved
        return quiet_s
