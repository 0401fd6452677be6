"""Curves of dots in a terminal: two by four to a character."""

from __future__ import annotations

import math
from collections.abc import Sequence

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


def draw_curve(values: Sequence[float], width: int, height: int, *, is_ascii: bool = False) -> list[str]:
    """Return `height` lines of a curve over the whole width, with its highest and lowest value at the left."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2 or width < 14 or height < 1:
        return [""] * max(0, height)
    low, high = min(finite), max(finite)
    names = [f"{high:.4g}", f"{low:.4g}"]
    left = max(map(len, names)) + 1
    lines = (
        _bars(finite, width - left, height, low, high) if is_ascii else _dots(finite, width - left, height, low, high)
    )
    labels = [""] * height
    labels[0] = names[0]
    if height > 1:
        labels[-1] = names[1]
    return [f"{label:>{left - 1}} {line}" for label, line in zip(labels, lines, strict=True)]


def _place(values: Sequence[float], num: int) -> list[float]:
    """Return the value at each of `num` places, straight lines between the points."""
    last = len(values) - 1
    found = []
    for at in range(num):
        place = at * last / max(1, num - 1)
        first = min(int(place), last - 1)
        found.append(values[first] + (values[first + 1] - values[first]) * (place - first))
    return found


def _dots(values: Sequence[float], width: int, height: int, low: float, high: float) -> list[str]:
    rows, span = height * 4, (high - low) or 1.0
    cells = [[0] * width for _ in range(height)]
    before: int | None = None
    for column, value in enumerate(_place(values, width * 2)):
        row = min(rows - 1, max(0, round((high - value) / span * (rows - 1))))
        first, last = (row, row) if before is None else (min(before, row), max(before, row))
        for one in range(first, last + 1):
            cells[one // 4][column // 2] |= _DOTS[column % 2][one % 4]
        before = row
    return ["".join(chr(0x2800 + cell) for cell in line) for line in cells]


def _bars(values: Sequence[float], width: int, height: int, low: float, high: float) -> list[str]:
    span = (high - low) or 1.0
    rows = [round((high - value) / span * (height - 1)) for value in _place(values, width)]
    return ["".join("*" if row == line else " " for row in rows) for line in range(height)]


def draw_bar(share: float, width: int, *, is_ascii: bool = False) -> str:
    """Return a bar that is full at 1."""
    done = round(max(0.0, min(1.0, share)) * width) if math.isfinite(share) else 0
    return ("#" if is_ascii else "█") * done + ("." if is_ascii else "░") * (width - done)
