"""How often messages go out: the same one not again and again, not too many, and not in the quiet hours."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import datetime, time

from headway.bridges.rules import Alert

_HOUR_S = 3600.0


class Limiter:
    """Says of each alert whether it goes out now. The end of a run always does."""

    def __init__(
        self, *, per_hour: int, repeat_s: float, quiet: tuple[time, time] | None, past: Iterable[float] = ()
    ) -> None:
        self._per_hour, self._repeat_s, self._quiet = per_hour, repeat_s, quiet
        self._sent: deque[float] = deque(past, maxlen=max(per_hour, 1))
        self._last: dict[tuple[str, str, str], float] = {}
        self._held: list[Alert] = []
        self.num_held = 0
        """Held back since the last message that went out."""

    def offer(self, alert: Alert, now: float) -> bool:
        """Say whether an alert goes out now; one that must wait for the end of the quiet hours is kept."""
        if alert.is_end:
            self._go(now)
            return True
        mark = (alert.kind, alert.code, alert.key)
        is_same = now - self._last.get(mark, -_HOUR_S * 1e6) < self._repeat_s
        is_many = len(self._sent) >= self._per_hour and now - self._sent[0] < _HOUR_S
        if is_same or is_many:
            self.num_held += 1
            return False
        self._last[mark] = now
        if self.is_quiet(now):
            self._held.append(alert)
            self.num_held += 1
            return False
        self._go(now)
        return True

    def due(self, now: float) -> list[Alert]:
        """Return what was kept, once the quiet hours are over."""
        if not self._held or self.is_quiet(now):
            return []
        held, self._held = self._held[-self._per_hour :], []
        self.num_held = max(0, self.num_held - len(held))
        for _ in held:
            self._sent.append(now)
        return held

    def take_held(self) -> int:
        """Return how many were held back, and begin to count again."""
        num, self.num_held = self.num_held, 0
        return num

    def is_quiet(self, now: float) -> bool:
        """Say whether it is the time of night in which nobody wants to be woken."""
        if self._quiet is None:
            return False
        begin, end = self._quiet
        clock = datetime.fromtimestamp(now).time()
        return begin <= clock < end if begin <= end else clock >= begin or clock < end

    def _go(self, now: float) -> None:
        self._sent.append(now)
