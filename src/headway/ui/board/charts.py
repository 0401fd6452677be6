"""The curves of the overview and of comparisons, as the address asks for them: axis, smoothing, logarithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from markupsafe import Markup

from headway.telemetry import best_measure, number
from headway.ui.report import Facts, Figure, Line, Plot, both, draw_plot, restarts_of
from headway.ui.report.svg import NARROW, WIDE
from headway.ui.report.thin import Floats, smooth
from headway.units import duration, short

Axis = Literal["step", "time", "samples", "tokens"]
AXES: Final[tuple[Axis, ...]] = ("step", "time", "samples", "tokens")
SMOOTH: Final = ("auto", "off", "strong")
_STYLES: Final = ("s0", "s4", "s2", "s3", "s1", "s5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """How curves are shown."""

    axis: Axis = "step"
    smoothing: str = "auto"
    is_log: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Choice:
        """Read an address; what it does not know is the usual."""
        axis = next((one for one in AXES if one == query.get("x")), AXES[0])
        smoothing = query.get("smooth", "auto")
        return cls(
            axis=axis, smoothing=smoothing if smoothing in SMOOTH else "auto", is_log=query.get("log", "") == "1"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where steps are on the chosen axis."""

    steps: Floats
    places: Floats

    def at(self, steps: Floats) -> Floats:
        return np.interp(steps, self.steps, self.places) if len(self.steps) else steps


def list_axes(facts: Facts) -> list[Axis]:
    """Return the axes that a run has numbers for."""
    steps = facts.steps
    if steps is None:
        return ["step"]
    found: list[Axis] = ["step"]
    if np.isfinite(steps.t).any():
        found.append("time")
    if np.isfinite(steps.samples).any():
        found.append("samples")
        if facts.plan.get("tokens_per_sample"):
            found.append("tokens")
    return found


def draw_loss(facts: Facts, choice: Choice) -> Figure | None:
    """Return the training loss with the validation loss beside it."""
    steps = facts.steps
    if steps is None or len(steps.step) < 2:
        return None
    places = _places(facts, choice.axis)
    usual = steps.weight > 0
    mean = smoothed(steps.loss[usual], choice.smoothing)
    at = places.at(steps.step)
    lines = [
        Line(x=at, y=steps.loss, label="every", style="s0 faint", is_read=False),
        Line(x=at[usual], y=mean, label="mean", style="s0"),
    ]
    legend = [("s0", both("report/smoothed")), ("s0 faint", both("report/every-step"))]
    if choice.smoothing == "off":
        lines, legend = [Line(x=at, y=steps.loss, label="every", style="s0")], [("s0", both("report/every-step"))]
    checks = [event for event in facts.validations if "loss" in event["measures"]]
    if checks:
        x = places.at(np.array([float(event["step"]) for event in checks]))
        y = np.array([number(event["measures"]["loss"]) for event in checks])
        lines.append(Line(x=x, y=y, label="val", style="s4 dots", is_read=False))
        legend.append(("s4", both("report/validation")))
    finite = mean[np.isfinite(mean)]
    return Figure(
        title=both("report/plot-loss"),
        note=both(
            "report/note-loss",
            first=f"{steps.loss[0]:.4g}",
            last=f"{finite[-1]:.4g}" if len(finite) else "n/a",
        ),
        svg=_plot(lines, choice, restarts=places.at(np.array(restarts_of(facts))).tolist()),
        legend=tuple(legend),
    )


def draw_validation(facts: Facts, choice: Choice) -> Figure | None:
    """Return the measure that decides."""
    if not facts.validations:
        return None
    name = best_measure(facts.validations[-1])
    checks = [event for event in facts.validations if name in event["measures"]]
    places = _places(facts, choice.axis)
    x = places.at(np.array([float(event["step"]) for event in checks]))
    y = np.array([number(event["measures"][name]) for event in checks])
    level = facts.baselines[0] if facts.baselines else None
    return Figure(
        title=both("report/plot-validation", name=name),
        note=both("report/note-validation", num=len(checks), first=f"{y[0]:.4g}", last=f"{y[-1]:.4g}"),
        svg=_plot(
            [Line(x=x, y=y, label=name, style="s4 dots")],
            choice,
            level=(level[1].value, level[0]) if level else None,
            until=float(np.nanmax(places.places)) if len(places.places) else None,
        ),
    )


def overlay(runs: Sequence[tuple[str, Facts]], choice: Choice) -> Figure | None:
    """Return the losses of several runs in one plot."""
    lines, legend = [], []
    for style, (name, facts) in zip(_STYLES, runs, strict=False):
        steps = facts.steps
        if steps is None or len(steps.step) < 2:
            continue
        usual = steps.weight > 0
        at = _places(facts, choice.axis).at(steps.step[usual])
        lines.append(Line(x=at, y=smoothed(steps.loss[usual], choice.smoothing), label=name, style=style))
        legend.append((style, Markup("{}").format(name)))
    if not lines:
        return None
    return Figure(
        title=both("report/plot-loss"),
        note=Markup(""),
        svg=_plot(lines, choice, width=WIDE),
        legend=tuple(legend),
        is_wide=True,
    )


def smoothed(values: Floats, how: str) -> Floats:
    """Return a curve smoothed as asked."""
    if how == "off":
        return values
    once = smooth(values)
    return smooth(smooth(smooth(once))) if how == "strong" else once


def _plot(
    lines: list[Line],
    choice: Choice,
    *,
    restarts: Sequence[float] = (),
    level: tuple[float, str] | None = None,
    until: float | None = None,
    width: int = NARROW,
) -> Markup:
    last = max(until or 0.0, *(float(np.nanmax(line.x)) for line in lines if len(line.x)))
    label = {"time": lambda value: duration(value) if value else "0", "tokens": short, "samples": short}
    plot = Plot(
        lines=lines,
        is_log=choice.is_log,
        restarts=restarts,
        level=level,
        until=last or None,
        width=width,
        axis="report/axis-step" if choice.axis == "step" else f"board/axis-{choice.axis}",
        at=label.get(choice.axis),
    )
    return draw_plot(plot)


def _places(facts: Facts, axis: Axis) -> _Places:
    steps = facts.steps
    if steps is None:
        return _Places(steps=np.zeros(0), places=np.zeros(0))
    if axis == "time":
        places = steps.t - (facts.state.started or float(np.nanmin(steps.t)))
    elif axis == "samples":
        places = steps.samples
    elif axis == "tokens":
        places = steps.samples * (facts.plan.get("tokens_per_sample") or 1)
    else:
        places = steps.step
    known = np.isfinite(places)
    # What a run did not say (a script without a sample count) is shown by step.
    return (
        _Places(steps=steps.step[known], places=places[known])
        if known.any()
        else _Places(steps=steps.step, places=steps.step)
    )


def part_step(runs: Sequence[Facts]) -> int | None:
    """Return the first step at which the losses of two runs are not the same; None: they are, or cannot be compared."""
    if len(runs) < 2 or runs[0].steps is None or runs[1].steps is None:
        return None
    first, second = runs[0].steps, runs[1].steps
    common, one, other = np.intersect1d(first.step, second.step, return_indices=True)
    differ = np.flatnonzero(first.loss[one] != second.loss[other])
    return int(common[differ[0]]) if len(differ) else None
