"""The run at some dozens of moments: what a slider shows that needs no script."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from markupsafe import Markup

from headway.telemetry import Event, best_measure, number
from headway.ui.report.both_languages import both
from headway.ui.report.gather import Facts, Steps
from headway.units import duration, short, size

_NUM: Final = 48
_HAPPENED: Final[Mapping[str, str]] = {
    "validation": "report/lane-validations",
    "checkpoint_committed": "report/lane-saves",
    "attempt_started": "report/lane-attempts",
    "incident": "report/lane-incidents",
    "hang": "report/lane-incidents",
    "finding": "report/warnings",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One place on the way."""

    step: str
    after: str
    height: float
    """How high the loss is there, of its whole range."""
    values: list[tuple[Markup, str]]
    happened: list[tuple[Markup, int]]
    """What came since the moment before it, and how often."""
    is_bad: bool
    """Something went wrong there."""


def list_moments(facts: Facts) -> list[Moment]:
    """Return evenly spaced moments of a run, its first and its last step among them."""
    steps = facts.steps
    if steps is None or len(steps.step) < 2:
        return []
    rows = np.unique(np.linspace(0, len(steps.step) - 1, _NUM).astype(int)).tolist()
    finite = steps.loss[np.isfinite(steps.loss)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    began = facts.state.started or float(np.nanmin(steps.t)) if np.isfinite(steps.t).any() else 0.0
    found, before = [], -math.inf
    for at in rows:
        t = float(steps.t[at])
        happened = _happened(facts.events, before, t)
        share = (float(steps.loss[at]) - low) / (high - low) if high > low else 0.5
        found.append(
            Moment(
                step=f"{int(steps.step[at]):,}",
                after=duration(max(0.0, t - began)) if math.isfinite(t) else "",
                height=share if math.isfinite(share) else 0.0,
                values=_values(facts, steps, at),
                happened=[(both(code), num) for code, num in happened.items()],
                is_bad="report/lane-incidents" in happened,
            )
        )
        before = t if math.isfinite(t) else before
    return found


def _values(facts: Facts, steps: Steps, at: int) -> list[tuple[Markup, str]]:
    row = [(both("report/tile-loss"), f"{steps.loss[at]:.4g}")]
    checks = [event for event in facts.validations if event["step"] <= steps.step[at]]
    if checks:
        name = best_measure(checks[-1])
        row.append((both("report/plot-validation", name=name), f"{number(checks[-1]['measures'].get(name)):.4g}"))
    if math.isfinite(steps.lr[at]):
        row.append((both("report/plot-lr"), f"{steps.lr[at]:.3g}"))
    if steps.grad_norm[at] > 0:
        row.append((both("report/plot-norm"), f"{steps.grad_norm[at]:.3g}"))
    batch, tokens = facts.plan.get("batch_samples"), facts.plan.get("tokens_per_sample")
    if batch and steps.own_s[at] > 0:
        rate = short(batch * (tokens or 1) / float(steps.own_s[at]))
        unit = both("report/unit-tokens" if tokens else "report/unit-samples")
        row.append((both("report/tile-speed"), Markup("{} {}").format(rate, unit)))
    memory = [float(values[at]) for values in steps.memory.values() if math.isfinite(values[at])]
    if memory:
        row.append((both("report/plot-memory", memory=facts.memory), size(max(memory))))
    return [*row, *_devices(facts, float(steps.t[at]))]


def _devices(facts: Facts, t: float) -> list[tuple[Markup, str]]:
    history = facts.devices
    times = np.frombuffer(history.times())
    if not len(times) or not history.gpus() or not math.isfinite(t):
        return []
    reading = history.readings[min(len(times) - 1, int(np.searchsorted(times, t)))]
    row = []
    for key, code, unit in (("util", "board/plot-util", "%"), ("temp", "board/plot-temp", " °C")):
        values = [number(history.at(reading, "gpus", gpu).get(key)) for gpu in history.gpus()]
        values = [value for value in values if math.isfinite(value)]
        if values:
            low, high = f"{min(values):.0f}", f"{max(values):.0f}"
            row.append((both(code), f"{low if low == high else f'{low}–{high}'}{unit}"))
    return row


def _happened(events: list[Event], after: float, until: float) -> dict[str, int]:
    found: dict[str, int] = {}
    for event in events:
        code = _HAPPENED.get(str(event.get("kind")))
        if code is not None and after < number(event.get("t")) <= until:
            found[code] = found.get(code, 0) + 1
    return found
