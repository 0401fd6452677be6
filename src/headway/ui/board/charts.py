"""The curves of a run and of comparisons, as an address asks for them: axis, smoothing, logarithm.

Every curve is the report's own. Here it is put on another axis, smoothed differently, or laid over those of other runs;
`curves_of` tells the same curves as numbers to the page's script.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from markupsafe import Markup

from headway.messages import Language, say
from headway.ui.report import Facts, Figure, Line, Plot, Stack, both, draw_devices, draw_figures
from headway.ui.report.thin import Floats, bin_means, smooth, thin
from headway.ui.text import clean_text
from headway.units import duration, short

Axis = Literal["step", "time", "samples", "tokens"]
AXES: Final[tuple[Axis, ...]] = ("step", "time", "samples", "tokens")
SMOOTH: Final = ("auto", "off", "strong")
_COMPARED: Final = ("loss", "validation", "speed", "norm", "lr")
_STYLES: Final = ("s0", "s4", "s2", "s3", "s1", "s5")
_SAID: Final = ("report/every-step", "report/smoothed", "report/validation")
_POINTS: Final = 1200
"""Points of a curve in a page: as many as a wide screen has columns."""
_AT: Final[Mapping[Axis, Callable[[float], str]]] = {
    "time": lambda value: duration(value) if value else "0",
    "samples": short,
    "tokens": short,
}


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
class Places:
    """Where steps are on an axis."""

    steps: Floats
    places: Floats

    def at(self, steps: Floats) -> Floats:
        """Return the places of some steps."""
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


def places_of(facts: Facts, axis: Axis) -> Places:
    """Return where the steps of a run are on an axis; what it did not tell is shown by step."""
    steps = facts.steps
    if steps is None:
        return Places(steps=np.zeros(0), places=np.zeros(0))
    if axis == "time":
        places = steps.t - (facts.state.started or float(np.nanmin(steps.t)))
    elif axis == "samples":
        places = steps.samples
    elif axis == "tokens":
        places = steps.samples * (facts.plan.get("tokens_per_sample") or 1)
    else:
        places = steps.step
    known = np.isfinite(places)
    if not known.any():
        return Places(steps=steps.step, places=steps.step)
    return Places(steps=steps.step[known], places=places[known])


def draw_chosen(facts: Facts, choice: Choice) -> list[Figure]:
    """Return every figure of a run as its reader asked for it."""
    places = places_of(facts, choice.axis)
    return [replace(figure, drawn=_put(figure.drawn, places, choice)) for figure in draw_figures(facts)]


def _put(drawn: Plot | Stack, places: Places, choice: Choice) -> Plot | Stack:
    axis = "report/axis-step" if choice.axis == "step" else f"board/axis-{choice.axis}"
    restarts = places.at(np.array(drawn.restarts, dtype=np.float64)).tolist()
    at = _AT.get(choice.axis)
    if isinstance(drawn, Stack):
        return replace(drawn, x=places.at(drawn.x), restarts=restarts, axis=axis, at=at)
    return replace(
        drawn,
        lines=[
            replace(line, x=places.at(line.x), y=line.y if line.raw is None else smoothed(line.raw, choice.smoothing))
            for line in drawn.lines
        ],
        restarts=restarts,
        until=None if drawn.until is None else float(places.at(np.array([drawn.until]))[0]),
        is_log=drawn.is_log or (choice.is_log and drawn.can_log),
        axis=axis,
        at=at,
    )


def overlay(runs: Sequence[tuple[str, Facts]], choice: Choice) -> list[Figure]:
    """Return the curves of several runs over each other, a colour for each run."""
    drawn = [{figure.key: figure for figure in draw_chosen(facts, choice)} for _, facts in runs]
    return [found for key in _COMPARED if (found := _lay(key, [name for name, _ in runs], drawn)) is not None]


def _lay(key: str, names: Sequence[str], drawn: Sequence[Mapping[str, Figure]]) -> Figure | None:
    lines, legend, first = [], [], None
    for at, (style, name, figures) in enumerate(zip(_STYLES, names, drawn, strict=False)):
        figure = figures.get(key)
        # Runs that are judged by another measure, or whose speed has another unit, have no place in the same plot.
        if figure is None or not isinstance(figure.drawn, Plot) or (first is not None and figure.title != first.title):
            continue
        first = first or figure
        main = next(line for line in figure.drawn.lines if line.is_read)
        dots = " dots" if "dots" in main.style else ""
        lines.append(replace(main, label=name, style=style + dots, index=at))
        legend.append((style, Markup("{}").format(name)))
    if first is None or not isinstance(first.drawn, Plot):
        return None
    ends = [figures[key].drawn for figures in drawn if key in figures]
    until = max((one.until for one in ends if isinstance(one, Plot) and one.until is not None), default=None)
    return Figure(
        key=key,
        title=both("report/plot-loss") if key == "loss" else first.title,
        note=Markup(""),
        drawn=replace(first.drawn, lines=lines, restarts=(), level=None, until=until),
        legend=tuple(legend),
        is_wide=key == "loss",
    )


def smoothed(values: Floats, how: str) -> Floats:
    """Return a curve smoothed as asked."""
    if how == "off":
        return values
    once = smooth(values)
    return smooth(smooth(smooth(once))) if how == "strong" else once


def part_step(runs: Sequence[Facts]) -> int | None:
    """Return the first step at which the losses of two runs are not the same; None: they are, or cannot be compared."""
    if len(runs) < 2 or runs[0].steps is None or runs[1].steps is None:
        return None
    first, second = runs[0].steps, runs[1].steps
    common, one, other = np.intersect1d(first.step, second.step, return_indices=True)
    differ = np.flatnonzero(first.loss[one] != second.loss[other])
    return int(common[differ[0]]) if len(differ) else None


# --- numbers for the script ---


def curves_of(facts: Facts, lang: Language, *, devices: bool) -> dict[str, Any]:
    """Return the curves of a run by step, or those of its devices by time, and where each step is on every axis."""
    figures = draw_devices(facts.devices, facts.state.started) if devices else draw_figures(facts)
    return {
        "schema": "board-curves/1",
        "axes": [] if devices else [_axes(facts)],
        "figures": [_tell(figure, lang) for figure in figures],
    }


def compared_curves(runs: Sequence[tuple[str, Facts]], lang: Language) -> dict[str, Any]:
    """Return the curves of several runs; each line says which run's axes it is on."""
    figures = overlay(runs, Choice(smoothing="off"))
    return {
        "schema": "board-curves/1",
        "axes": [_axes(facts) for _, facts in runs],
        "figures": [_tell(figure, lang, is_overlay=True) for figure in figures],
    }


def _axes(facts: Facts) -> dict[str, list[float | None]]:
    found: dict[str, list[float | None]] = {}
    for axis in list_axes(facts):
        places = places_of(facts, axis)
        num = len(places.steps)
        # Where nothing happened between attempts, both of its ends are kept.
        jumps = np.argsort(-np.diff(places.places))[:40] if num > _POINTS else np.zeros(0, dtype=int)
        even = np.linspace(0, num - 1, min(num, _POINTS)).astype(int)
        keep = np.unique(np.concatenate([even, jumps, jumps + 1])).astype(int)
        found[axis] = _places(places.places[keep])
        found[f"{axis}-steps"] = _places(places.steps[keep])
    return found


def _tell(figure: Figure, lang: Language, *, is_overlay: bool = False) -> dict[str, Any]:
    drawn = figure.drawn
    about = {
        "key": figure.key,
        "unit": drawn.unit,
        "restarts": _places(np.array(drawn.restarts, dtype=np.float64)),
        "is_by_step": drawn.axis == "report/axis-step",
    }
    if isinstance(drawn, Stack):
        x, bins = drawn.binned()
        common = {"kind": "area", "run": 0, "x": _places(x)}
        lines = [
            {"label": say(layer.label, lang), "style": layer.style, "y": _values(y), **common}
            for layer, y in zip(drawn.layers, bins, strict=True)
        ]
        return {**about, "lines": lines, "is_log": False, "can_log": False, "from_zero": True, "level": None}
    return {
        **about,
        "lines": [_line(line, lang, is_overlay=is_overlay) for line in drawn.lines],
        "is_log": drawn.is_log,
        "can_log": drawn.can_log,
        "from_zero": drawn.from_zero,
        "level": None if drawn.level is None else {"value": drawn.level[0], "name": drawn.level[1]},
    }


def _line(line: Line, lang: Language, *, is_overlay: bool) -> dict[str, Any]:
    kind = "dots" if "dots" in line.style else "every" if "faint" in line.style else "line"
    if line.raw is None:
        x, y = thin(line.x, line.y, _POINTS)
    else:
        kind, x, y = "mean", bin_means(line.x, _POINTS), bin_means(line.raw, _POINTS)
    return {
        "label": line.label if is_overlay else _name(line, lang),
        "style": line.style[:2],
        "kind": kind,
        "run": line.index if is_overlay else 0,
        "x": _places(x),
        "y": _values(y),
    }


def _name(line: Line, lang: Language) -> str:
    """Return the name of a curve: a measure has the name that its task gave it."""
    if line.index is not None:
        return say(line.label, lang, rank=line.index)
    return say(line.label, lang) if line.label in _SAID else clean_text(line.label)


def _values(values: Floats) -> list[float | None]:
    """Return numbers with six digits, which is what a curve can show; what is not a number becomes null."""
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values.tolist()]


def _places(values: Floats) -> list[float | None]:
    return [float(f"{value:.12g}") if math.isfinite(value) else None for value in values.tolist()]
