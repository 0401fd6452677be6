"""A small curve in a table of runs."""

from __future__ import annotations

from markupsafe import Markup

_WIDTH, _HEIGHT = 96, 26


def draw_sparkline(values: list[float]) -> Markup:
    """Return a small curve; empty where there is nothing to draw."""
    if len(values) < 2:
        return Markup("")
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = (_WIDTH - 4) / (len(values) - 1)
    points = [
        f"{2 + at * step:.1f} {_HEIGHT - 3 - (value - low) / span * (_HEIGHT - 6):.1f}"
        for at, value in enumerate(values)
    ]
    shape = (
        '<svg class="spark" viewBox="0 0 {} {}" width="{}" height="{}" aria-hidden="true">'
        '<path class="curve s0" d="M{}"/></svg>'
    )
    return Markup(shape).format(_WIDTH, _HEIGHT, _WIDTH, _HEIGHT, "L".join(points))
