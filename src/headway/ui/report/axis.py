"""Ticks and scales of a plot."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from headway.units import short


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps a range of values to a range of pixels, evenly or by logarithm."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high = (math.log10(self.low), math.log10(self.high)) if self.is_log else (self.low, self.high)
        shown = math.log10(max(value, 1e-300)) if self.is_log else value
        share = (shown - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)


def pick_ticks(low: float, high: float, num: int = 5) -> list[float]:
    """Return round values inside a range, about `num` of them, 1, 2 or 5 times a power of ten apart."""
    rough = (high - low) / max(1, num)
    if not 1e-300 < rough < math.inf:  # a damaged history may hold any number
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    ticks = []
    while first * step <= high + step * 1e-9:
        ticks.append(round(first * step, 12))
        first += 1
    return ticks


def pick_log_ticks(low: float, high: float) -> list[float]:
    """Return 1-2-5 steps of the decades inside a range."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    times = (1,) if len(powers) > 4 else (1, 2, 5)
    return [t * 10.0**p for p in powers for t in times if low <= t * 10.0**p <= high]


def plain_tick(value: float) -> str:
    """Return a tick as few characters."""
    if value == 0:
        return "0"
    if abs(value) >= 10_000:
        return short(value)
    if abs(value) < 1e-3:
        return f"{value:.0e}".replace("e-0", "e-")
    return f"{value:.6g}"


def spread(values: list[float], pad: float = 0.05) -> tuple[float, float]:
    """Return a range that holds the values with some air; a flat line gets a range of its own."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    if low == high:
        room = abs(low) * 0.1 or 1.0
        return low - room, high + room
    room = (high - low) * pad
    return (low - room if low < 0 or low - room > 0 else 0.0), high + room


Label = Callable[[float], str]
