"""Runs side by side: in what they differ, and what that brought."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from headway.config import flatten
from headway.telemetry import RunDir, RunState, list_runs, read_record, run_state, section

_NOT_SETTINGS = ("out", "name", "lang")
_NOT_SECTIONS = ("env.", "log.", "task.data_dir")
"""Where a run is and how it talks; nothing of what it learns."""
_FEW = 4
"""Runs that differ in more are other experiments."""
_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One run next to the first."""

    state: RunState
    settings: dict[str, str]
    """Keys in which the runs differ, with this run's value; a key it does not have is left out."""

    def gain(self, first: Beside) -> float:
        """Return by how much the best measure is better than the first run's, in its own unit; NaN: not comparable."""
        own, other = self.state.best, first.state.best
        if own is None or other is None or own.name != other.name:
            return math.nan
        return (own.value - other.value) * (-1 if own.sense == "min" else 1)


def compare_runs(runs: Sequence[RunDir]) -> list[Beside]:
    """Return the runs in the order given, each with the settings in which any of them differ."""
    configs = [_settings(run) for run in runs]
    keys = sorted({key for config in configs for key in config})
    other = [key for key in keys if len({config.get(key) for config in configs}) > 1]
    return [
        Beside(state=run_state(run), settings={key: config[key] for key in other if key in config})
        for run, config in zip(runs, configs, strict=True)
    ]


def find_siblings(run: RunDir) -> list[RunDir]:
    """Return earlier and later runs of the same folder and recipe that differ in a few settings, newest first."""
    recipe, own = read_record(run.job).get("recipe"), _settings(run)
    found = []
    for other in list_runs(run.root.parent):
        if other.root == run.root or not own or read_record(other.job).get("recipe") != recipe:
            continue
        theirs = _settings(other)
        differing = {key for key in {*own, *theirs} if own.get(key) != theirs.get(key)}
        if 1 <= len(differing) <= _FEW and run_state(other).best is not None:
            found.append(other)
    return found[:_SHOWN]


def _settings(run: RunDir) -> dict[str, str]:
    """Return the values of a run's config as text, by dotted key."""
    job = read_record(run.job)
    flat = flatten(section(job.get("config")) or {"launch": section(job.get("launch"))})
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in flat.items()
        if key not in _NOT_SETTINGS and not key.startswith(_NOT_SECTIONS)
    }
