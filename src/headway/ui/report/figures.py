"""Which plots the report shows, and what each of them says below its title."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from headway.telemetry import best_measure, number
from headway.ui.report.both_languages import Said, both
from headway.ui.report.gather import Facts, Steps
from headway.ui.report.svg import NARROW, WIDE, Layer, Line, Plot, Stack, draw_plot, draw_stack
from headway.ui.report.thin import Floats, smooth
from headway.ui.text import clean_text
from headway.units import ABSENT, duration, short, size

_MOST_SPREAD = 1_000_000.0
_MOST_WRITTEN = 12
_DOTS = 20
"""Fewer points than this are shown as points."""
PART_STYLES = {
    "data": "s1",
    "forward": "s0",
    "backward": "s2",
    "comm": "s3",
    "optimizer": "s4",
    "save": "s5",
    "eval": "s6",
    "other": "s7",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One plot with its words."""

    key: str
    title: Markup
    note: Markup
    drawn: Plot | Stack
    legend: tuple[tuple[str, Markup], ...] = ()
    """Class of the colour and its name."""
    is_wide: bool = False

    @property
    def svg(self) -> Markup:
        """The plot as the page shows it."""
        if isinstance(self.drawn, Stack):
            return draw_stack(self.drawn)
        return draw_plot(replace(self.drawn, width=WIDE if self.is_wide else NARROW))


def draw_figures(facts: Facts) -> list[Figure]:
    """Return every plot the run has data for, the most asked for first."""
    steps = facts.steps
    if steps is None or len(steps.step) < 2:
        return [*(figure for figure in [_validation(facts)] if figure), *_written(facts)]
    restarts = restarts_of(facts)
    makers: list[Callable[[Facts, Steps, list[float]], Figure | None]] = [
        lambda facts, steps, restarts: _validation(facts, restarts),
        _speed,
        _split,
        _memory,
        _rate,
        _norm,
    ]
    rest = [figure for make in makers if (figure := make(facts, steps, restarts))]
    # An odd number of plots would leave a hole in the last row of two; then the loss takes the whole first one.
    return [_loss(facts, steps, restarts, is_wide=len(rest) % 2 == 0), *rest, *_written(facts)]


def restarts_of(facts: Facts) -> list[float]:
    """Return the steps behind which an attempt began."""
    return [
        number(event.get("step")) + 0.5
        for event in facts.events
        if event.get("kind") == "training_started" and number(event.get("step")) > 0
    ]


def _loss(facts: Facts, steps: Steps, restarts: list[float], *, is_wide: bool) -> Figure:
    usual = steps.weight > 0
    mean = smooth(steps.loss[usual])
    lines = [
        Line(x=steps.step, y=steps.loss, label="report/every-step", style="s0 faint", is_read=False),
        Line(x=steps.step[usual], y=mean, label="report/smoothed", style="s0", raw=steps.loss[usual]),
    ]
    legend = [("s0", both("report/smoothed")), ("s0 faint", both("report/every-step"))]
    checks = [event for event in facts.validations if "loss" in event["measures"]]
    if checks:
        x = np.array([float(event["step"]) for event in checks])
        y = np.array([number(event["measures"]["loss"]) for event in checks])
        lines.append(Line(x=x, y=y, label="report/validation", style="s4 dots", is_read=False))
        legend.append(("s4", both("report/validation")))
    finite = mean[np.isfinite(mean)]
    last = f"{finite[-1]:.4g}" if len(finite) else ABSENT
    return Figure(
        key="loss",
        title=both("report/plot-loss"),
        note=both("report/note-loss", first=_figure(steps.loss[0]), last=last),
        drawn=Plot(lines=lines, restarts=restarts, until=last_step(facts), can_log=True),
        legend=tuple(legend),
        is_wide=is_wide,
    )


def _validation(facts: Facts, restarts: list[float] | None = None) -> Figure | None:
    if not facts.validations:
        return None
    name = best_measure(facts.validations[-1])
    checks = [event for event in facts.validations if name in event["measures"]]
    x = np.array([float(event["step"]) for event in checks])
    y = np.array([number(event["measures"][name]) for event in checks])
    level = facts.baselines[0] if facts.baselines else None
    line = Line(x=x, y=y, label=name, style="s4 dots")
    mark = (level[1].value, level[0]) if level else None
    return Figure(
        key="validation",
        title=both("report/plot-validation", name=name),
        note=both("report/note-validation", num=len(checks), first=_figure(y[0]), last=_figure(y[-1])),
        drawn=Plot(lines=[line], restarts=restarts or (), level=mark, until=last_step(facts), can_log=True),
    )


def _speed(facts: Facts, steps: Steps, restarts: list[float]) -> Figure | None:
    batch, tokens = facts.plan.get("batch_samples"), facts.plan.get("tokens_per_sample")
    if not batch:
        return None
    rate = batch * (tokens or 1) / np.maximum(steps.own_s, 1e-9)
    unit = "report/unit-tokens" if tokens else "report/unit-samples"
    usual = steps.weight > 0
    lines = [
        Line(x=steps.step, y=rate, label="report/every-step", style="s2 faint", is_read=False),
        Line(x=steps.step[usual], y=smooth(rate[usual]), label="report/smoothed", style="s2", raw=rate[usual]),
    ]
    return Figure(
        key="speed",
        title=both("report/plot-speed", unit=Said(unit)),
        note=both("report/note-speed", median=short(float(np.median(rate[usual]))), low=short(float(rate.min()))),
        drawn=Plot(lines=lines, label=short, restarts=restarts, from_zero=True, until=last_step(facts)),
    )


def _written(facts: Facts) -> list[Figure]:
    """Return what a script itself has written for TensorBoard, the losses first."""
    names = sorted(facts.scalars, key=lambda name: ("loss" not in name.lower(), name))
    found = []
    for at, name in enumerate(names[:_MOST_WRITTEN]):
        x, y = (np.array(column, dtype=np.float64) for column in zip(*facts.scalars[name], strict=True))
        title = clean_text(name)
        note = both("report/note-written", num=f"{len(x):,}", last=_figure(float(y[-1])))
        line = Line(x=x, y=y, label=title, style=f"s{(0, 4, 2, 3, 1, 5)[at % 6]}{' dots' if len(x) < _DOTS else ''}")
        plot = Plot(lines=[line], can_log=bool((y > 0).all()))
        found.append(Figure(key=f"written-{at}", title=Markup("{}").format(title), note=note, drawn=plot))
    return found


def _step_time(ms: float) -> str:
    return f"{ms:.3g} ms" if ms < 999.5 else f"{ms / 1000:.3g} s"


def _split(facts: Facts, steps: Steps, restarts: list[float]) -> Figure | None:
    told = steps.is_told & (steps.weight > 0)
    shown = {key: values[told] * 1000 for key, values in steps.parts.items() if key != "eval" and values.any()}
    if not shown or not told.any():
        return None
    rest = steps.total_s[told] * 1000 - sum(shown.values()) - steps.parts["eval"][told] * 1000
    shown["other"] = np.maximum(np.nan_to_num(rest), 0.0)
    x, shown = _spread(steps.step[told], shown, steps.weight[told])
    layers = [Layer(values=one, style=PART_STYLES[key], label=f"report/part-{key}") for key, one in shown.items()]
    longest = max(shown, key=lambda key: float(shown[key].sum()))
    share = 100 * float(shown[longest].sum()) / max(1e-12, float(sum(values.sum() for values in shown.values())))
    return Figure(
        key="split",
        title=both("report/plot-split"),
        note=both("report/note-split", part=Said(f"report/part-{longest}"), share=f"{share:.0f}"),
        drawn=Stack(x=x, layers=layers, label=_step_time, unit="ms", restarts=restarts),
        legend=tuple((PART_STYLES[key], both(f"report/part-{key}")) for key in shown),
    )


def _spread(x: Floats, shown: dict[str, Floats], weight: Floats) -> tuple[Floats, dict[str, Floats]]:
    """Return the parts with each step as often as it counts, so that means over them are right."""
    if (weight == 1).all():
        return x, shown
    # Each stretch of a long run is one step that stands for many, and the few long ones, which stand for themselves.
    times = np.maximum(1, np.round(weight * min(1.0, _MOST_SPREAD / weight.sum()))).astype(int)
    return np.repeat(x, times), {key: np.repeat(values, times) for key, values in shown.items()}


def _memory(facts: Facts, steps: Steps, restarts: list[float]) -> Figure | None:
    if not steps.memory:
        return None
    peak = max(float(np.nanmax(values)) for values in steps.memory.values())
    unit, name = ((1 << 30), "GiB") if peak >= 2 << 30 else ((1 << 20), "MiB")
    lines = [
        Line(x=steps.step, y=values / unit, label="report/rank", index=rank, style=f"s{(0, 4, 2, 3, 1, 5, 6, 7)[i]}")
        for i, (rank, values) in enumerate(list(steps.memory.items())[:8])
    ]
    shown = Plot(
        lines=lines,
        label=lambda value: f"{value:.4g} {name}",
        unit=name,
        restarts=restarts,
        from_zero=True,
        until=last_step(facts),
    )
    return Figure(
        key="memory",
        title=both("report/plot-memory", memory=facts.memory),
        note=both("report/note-memory", peak=size(peak), num=len(steps.memory)),
        drawn=shown,
        legend=tuple((line.style, both("report/rank", rank=line.index)) for line in lines),
    )


def _rate(facts: Facts, steps: Steps, restarts: list[float]) -> Figure:
    line = Line(x=steps.step, y=steps.lr, label="lr", style="s3")
    peak = float(np.nanmax(steps.lr)) if np.isfinite(steps.lr).any() else float("nan")
    return Figure(
        key="lr",
        title=both("report/plot-lr"),
        note=both("report/note-lr", peak=_figure(peak), last=_figure(steps.lr[-1])),
        drawn=Plot(lines=[line], restarts=restarts, from_zero=True, until=last_step(facts)),
    )


def _norm(facts: Facts, steps: Steps, restarts: list[float]) -> Figure | None:
    norms = np.where(steps.grad_norm > 0, steps.grad_norm, np.nan)
    if not np.isfinite(norms).any():
        return None
    at = int(np.nanargmax(np.where(np.isfinite(norms), norms, np.nan)))
    line = Line(x=steps.step, y=norms, label="norm", style="s5")
    return Figure(
        key="norm",
        title=both("report/plot-norm"),
        note=both("report/note-norm", peak=_figure(norms[at]), step=int(steps.step[at])),
        drawn=Plot(lines=[line], is_log=True, restarts=restarts, until=last_step(facts)),
    )


def draw_shares(facts: Facts) -> list[tuple[str, Markup, str, float]]:
    """Return where the run's time went: class, name, text and per cent of each part."""
    if facts.steps is None or facts.wall_s <= 0:
        return []
    told, weight = facts.steps.is_told, facts.steps.weight
    total = facts.steps.total_s * weight
    times = float(total.sum()) / max(float(total[told].sum()), 1e-12) if told.any() else 0.0
    spent = {key: times * float((values * weight).sum()) for key, values in facts.steps.parts.items()}
    spent["other"] = max(0.0, facts.wall_s - sum(spent.values()))
    # Clocks of ranks and supervisor differ by a little; the bar is always whole.
    whole = sum(spent.values())
    return [
        (PART_STYLES[key], both(f"report/share-{key}"), duration(value), 100 * value / whole)
        for key, value in spent.items()
        if value > 0
    ]


def last_step(facts: Facts) -> float | None:
    """Return where the axis of steps ends: the last step any curve has."""
    ends = [float(facts.steps.step[-1])] if facts.steps is not None else []
    return max([*ends, *(float(event["step"]) for event in facts.validations)], default=None)


def _figure(value: float) -> str:
    return f"{value:.4g}"
