"""Bytes, seconds and counts as people read them."""

from __future__ import annotations

import math
import re

ABSENT = "–"
"""What a table shows where there is no value; a sentence says it in its own language."""

_BYTE_STEPS = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def size(num_bytes: float | None) -> str:
    """Return bytes as text, `1.5 GiB`; an absent reading is a dash."""
    if num_bytes is None or not math.isfinite(num_bytes):
        return ABSENT
    for name, step in _BYTE_STEPS:
        # What would round to 1024.0 of a unit is 1.0 of the next.
        if abs(num_bytes) >= step * 1023.95 / 1024:
            return f"{num_bytes / step:.1f} {name}"
    return f"{num_bytes:.0f} B"


def duration(seconds: float | None) -> str:
    """Return seconds as text: `850 ms`, `12.4 s`, `3:05`, `2:03:05`, `3 d 4:05`; what is not a number is a dash."""
    if seconds is None or not math.isfinite(seconds):
        return ABSENT
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours}:{minutes:02d}"
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def age(seconds: float) -> tuple[str, str]:
    """Return a time that has passed as its unit and a number: `("min", "12")`; a future one is 0 seconds."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return unit, f"{seconds / length:.0f}"
    return "s", f"{max(0.0, seconds):.0f}"


def count(number: float | None) -> str:
    """Return a count with commas between the thousands: `1,048,576`."""
    if number is None:
        return ABSENT
    return f"{number:,.0f}"


def commas(text: str) -> str:
    """Return a text whose whole numbers have commas between the thousands: `1,048,576 / (8 × 2,048)`."""
    return re.sub(r"(?<![\d.])\d{4,}(?!\d)", lambda found: f"{int(found[0]):,}", text)


def short(number: float | None) -> str:
    """Return a number in three figures with a letter: `35.1k`, `1.88G`."""
    if number is None:
        return ABSENT
    for letter, step in (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= 0.9995 * step:
            return f"{number / step:.3g}{letter}"
    return f"{number:.3g}"
