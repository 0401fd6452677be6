"""Plots as inline SVG, written by hand: no library in the page, no script, readable in dark and light.

Colours are classes (`s0` .. `s7`), so that the page's style sheet alone decides them. Text that came from a run is
escaped by `markupsafe`. Reading a value needs no script either: each stretch of a plot holds a cross-hair that the
style sheet shows while the pointer is over it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup, escape

from headway.ui.report.axis import Label, Scale, pick_log_ticks, pick_ticks, plain_tick, spread
from headway.ui.report.both_languages import both_texts
from headway.ui.report.thin import Floats, bin_means, thin

HEIGHT = 270
NARROW, WIDE = 720, 1460
"""Half of the page and all of it; letters keep their size."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 68, 14, 14, 40
_BANDS = 90
_BINS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One curve."""

    x: Floats
    y: Floats
    label: str
    """A message code, or plain text that is the same in both languages."""
    style: str
    """Class of the stroke: `s0` .. `s7`, with `faint` or `dots` beside it."""
    is_read: bool = True
    """Shown in the read-out."""
    raw: Floats | None = None
    """What a smoothed curve was made from: a page with scripts smooths it as its reader asks."""
    index: int | None = None
    """Rank or GPU, where the label is a message that names one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Curves over steps, with marks."""

    lines: Sequence[Line]
    label: Label = plain_tick
    """Text of a value."""
    unit: str = ""
    """What follows a value."""
    is_log: bool = False
    can_log: bool = False
    """A reader may ask for a logarithmic axis."""
    from_zero: bool = False
    level: tuple[float, str] | None = None
    """A dashed line across, with its name: a baseline."""
    restarts: Sequence[float] = field(default_factory=tuple)
    """Steps at which an attempt began."""
    until: float | None = None
    """Last step of the run, so that all plots share one axis; none: the curves' own range."""
    width: int = NARROW
    axis: str = "report/axis-step"
    """Message code of what the horizontal axis counts."""
    at: Label | None = None
    """Text of a place on the horizontal axis; none: of a step, which is whole."""


def draw_plot(plot: Plot) -> Markup:
    """Return the plot as one SVG element."""
    xs, ys = _scales(plot)
    parts = [_grid(xs, ys, plot), _restarts(xs, plot.restarts)]
    if plot.level is not None:
        parts.append(_level(xs, ys, plot.level))
    parts += [_curve(line, xs, ys, plot.width) for line in plot.lines]
    parts.append(_read_outs(plot, xs, ys))
    return _frame(parts, plot.width)


def _scales(plot: Plot) -> tuple[Scale, Scale]:
    xs = np.concatenate([line.x for line in plot.lines])
    values = np.concatenate([line.y for line in plot.lines]).tolist()
    if plot.level is not None:
        values.append(plot.level[0])
    if plot.is_log:
        values = [value for value in values if value > 0 and math.isfinite(value)] or [0.1, 1.0]
        low, high = min(values) / 1.15, max(values) * 1.15
    else:
        low, high = spread(values)
        low = min(0.0, low) if plot.from_zero else low
    first, last = (0.0, plot.until) if plot.until else (float(xs.min()), float(xs.max()))
    return Scale(first, last, _LEFT, plot.width - _RIGHT), Scale(low, high, HEIGHT - _BOTTOM, _TOP, plot.is_log)


def _grid(xs: Scale, ys: Scale, plot: Plot) -> Markup:
    ticks = pick_log_ticks(ys.low, ys.high) if plot.is_log else pick_ticks(ys.low, ys.high)
    parts = []
    for tick in ticks:
        y = ys.at(tick)
        parts.append(_tag("line", "grid", x1=xs.start, x2=xs.end, y1=y, y2=y))
        parts.append(_text(_LEFT - 8, y + 4, plot.label(tick), "tick end"))
    parts += _step_ticks(xs, plot)
    return Markup("").join(parts)


def _step_ticks(xs: Scale, plot: Plot) -> list[Markup]:
    parts = [_tag("line", "base", x1=xs.start, x2=xs.end, y1=HEIGHT - _BOTTOM, y2=HEIGHT - _BOTTOM)]
    for tick in pick_ticks(xs.low, xs.high, 8 if xs.end < NARROW else 16):
        if plot.at is not None or tick == int(tick):
            parts.append(_text(xs.at(tick), HEIGHT - _BOTTOM + 18, (plot.at or plain_tick)(tick), "tick mid"))
    return [*parts, both_texts(xs.end, HEIGHT - 4, plot.axis, "tick end")]


def _restarts(xs: Scale, steps: Sequence[float]) -> Markup:
    lines = [
        _tag("line", "restart", x1=xs.at(step), x2=xs.at(step), y1=_TOP, y2=HEIGHT - _BOTTOM)
        for step in steps
        if xs.low <= step <= xs.high
    ]
    return Markup("").join(lines)


def _level(xs: Scale, ys: Scale, level: tuple[float, str]) -> Markup:
    value, name = level
    y = ys.at(value)
    line = _tag("line", "level", x1=xs.start, x2=xs.end, y1=y, y2=y)
    return line + _text(xs.end - 4, y + (17 if y < 40 else -7), name, "tick end levelname")


def _curve(line: Line, xs: Scale, ys: Scale, width: int) -> Markup:
    x, y = thin(line.x, line.y, 600 * width // NARROW)
    pieces: list[list[str]] = [[]]
    for at, value in zip(x.tolist(), y.tolist(), strict=True):
        if math.isfinite(value):
            pieces[-1].append(f"{xs.at(at):.1f} {ys.at(value):.1f}")
        elif pieces[-1]:
            pieces.append([])
    path = "".join(f"M{'L'.join(piece)}" for piece in pieces if piece)
    drawn = Markup('<path class="curve {}" d="{}"/>').format(line.style, path)
    if "dots" in line.style:
        spots = zip(x.tolist(), y.tolist(), strict=True)
        drawn += Markup("").join(_dot(xs.at(at), ys.at(v), line.style) for at, v in spots if math.isfinite(v))
    return drawn


def _dot(x: float, y: float, style: str, radius: float = 3.2) -> Markup:
    return Markup(f'<circle class="dot {style}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>')


def _read_outs(plot: Plot, xs: Scale, ys: Scale) -> Markup:
    """Return the hidden cross-hairs, one a stretch, at real points of the first curve."""
    lines = [line for line in plot.lines if line.is_read]
    if not lines or not len(lines[0].x):
        return Markup("")
    chosen = np.unique(np.linspace(0, len(lines[0].x) - 1, min(_BANDS, len(lines[0].x))).astype(int))
    steps = lines[0].x[chosen].tolist()
    edges = [xs.start, *[(xs.at(a) + xs.at(b)) / 2 for a, b in itertools.pairwise(steps)], xs.end]
    parts = []
    for i, step in enumerate(steps):
        found = [(line, float(line.y[j])) for line in lines if (j := _nearest(line.x, step)) is not None]
        dots = [_dot(xs.at(step), ys.at(v), line.style, 3.5) for line, v in found if math.isfinite(v)]
        words = " · ".join([(plot.at or plain_tick)(step), *[plot.label(v) for _, v in found]])
        parts.append(_hit((edges[i], edges[i + 1]), xs, xs.at(step), Markup("").join(dots), words))
    return Markup("").join(parts)


def _nearest(x: Floats, step: float) -> int | None:
    i = int(np.searchsorted(x, step))
    return i if i < len(x) and x[i] == step else None


def _hit(edges: tuple[float, float], xs: Scale, x: float, dots: Markup, words: str) -> Markup:
    left, right = edges
    side = "end" if x > (xs.start + xs.end) / 2 else "begin"
    line = _tag("line", "hair", x1=x, x2=x, y1=_TOP, y2=HEIGHT - _BOTTOM)
    note = _text(x + (-8 if side == "end" else 8), _TOP + 12, words, f"note {side}")
    area = _tag("rect", "area", x=left, y=_TOP, width=right - left, height=HEIGHT - _TOP - _BOTTOM)
    return Markup('<g class="hit">{}<g class="tip">{}{}{}</g></g>').format(area, line, dots, note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One colour of a stacked area."""

    values: Floats
    style: str
    label: str
    """A message code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Layers on top of each other."""

    x: Floats
    layers: Sequence[Layer]
    label: Label
    unit: str
    restarts: Sequence[float] = field(default_factory=tuple)
    axis: str = "report/axis-step"
    at: Label | None = None

    def binned(self) -> tuple[Floats, list[Floats]]:
        """Return the means of a few hundred stretches."""
        return bin_means(self.x, _BINS), [np.nan_to_num(bin_means(layer.values, _BINS)) for layer in self.layers]


def draw_stack(stack: Stack) -> Markup:
    """Return the layers; each stretch shows its mean, the top is cut where one stall would rule."""
    x, layers, restarts = stack.x, stack.layers, stack.restarts
    steps, bins = stack.binned()
    totals = np.sum(bins, axis=0)
    high = max(float(np.percentile(totals, 98)) * 1.25, 1e-9)
    xs = Scale(0.0, float(x[-1]), _LEFT, NARROW - _RIGHT)
    ys = Scale(0.0, min(high, float(totals.max()) * 1.05 or 1e-9), HEIGHT - _BOTTOM, _TOP)
    parts = []
    floor = np.zeros_like(totals)
    for layer, values in zip(layers, bins, strict=True):
        top = floor + values
        edge = [f"{xs.at(a):.1f} {ys.at(min(b, ys.high)):.1f}" for a, b in zip(steps, top, strict=True)]
        back = [f"{xs.at(a):.1f} {ys.at(min(b, ys.high)):.1f}" for a, b in zip(steps[::-1], floor[::-1], strict=True)]
        parts.append(Markup('<path class="fill {}" d="M{}L{}Z"/>').format(layer.style, "L".join(edge), "L".join(back)))
        floor = top
    total = Line(x=steps, y=totals, label="", style="none")
    plot = Plot(lines=[total], label=stack.label, axis=stack.axis, at=stack.at)
    return _frame([*parts, _grid(xs, ys, plot), _restarts(xs, restarts), _read_outs(plot, xs, ys)], NARROW)


def _frame(parts: Sequence[Markup], width: int) -> Markup:
    body = Markup("").join(parts)
    return Markup('<svg viewBox="0 0 {} {}" aria-hidden="true">{}</svg>').format(width, HEIGHT, body)


def _tag(name: str, style: str, **numbers: float) -> Markup:
    # Names are ours and numbers are numbers: nothing to escape, and a page has thousands of these.
    places = "".join([f' {key}="{value:.1f}"' for key, value in numbers.items()])
    return Markup(f'<{name} class="{style}"{places}/>')


def _text(x: float, y: float, words: str, style: str) -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(style, x, y, escape(words))
