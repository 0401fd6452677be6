"""Runs side by side: in what they differ, and what that brought."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.config import flatten
from headway.telemetry import RunDir, RunState, list_runs, read_record, run_state, section, words

_NOT_SETTINGS = ("out", "name", "lang")
_NOT_SECTIONS = ("env.", "log.", "task.data_dir")
"""Where a run is and how it talks; nothing of what it learns."""
_FEW = 4
"""Runs that differ in more are other experiments."""
_SHOWN = 8
_OPTION: Final = re.compile(r"-{1,2}[A-Za-z]")


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
    what, own = _what(read_record(run.job)), _settings(run)
    found = []
    for other in list_runs(run.root.parent):
        if other.root == run.root or not own or _what(read_record(other.job)) != what:
            continue
        theirs = _settings(other)
        differing = {key for key in {*own, *theirs} if own.get(key) != theirs.get(key)}
        state = run_state(other) if 1 <= len(differing) <= _FEW else None
        if state is not None and (state.best is not None or state.loss is not None):
            found.append(other)
    return found[:_SHOWN]


def _what(job: Mapping[str, Any]) -> str | None:
    """Return what a run trains: its recipe, or the script of its line."""
    argv = _argv(job)
    return words(job.get("recipe")) if argv is None else next((word for word in argv if word.endswith(".py")), argv[0])


def _argv(job: Mapping[str, Any]) -> list[str] | None:
    """Return the words of a run that is not ours."""
    argv = section(job.get("foreign")).get("argv")
    return [str(word) for word in argv] if isinstance(argv, list) and argv else None


def _arguments(argv: Sequence[str]) -> dict[str, str]:
    """Return the arguments behind a script by name: `--lr 1e-3`, `--lr=1e-3`, `lr=1e-3`, `--fast`; others by place."""
    at = next((i for i, word in enumerate(argv) if word.endswith(".py")), 0) + 1
    found: dict[str, str] = {}
    place = 0
    while at < len(argv):
        word, at = argv[at], at + 1
        name, sign, value = word.partition("=")
        if sign:
            found[name] = value
        elif word.startswith("-") and at < len(argv) and not _OPTION.match(argv[at]):
            found[word], at = argv[at], at + 1
        elif word.startswith("-"):
            found[word] = "true"
        else:
            place += 1
            found[f"[{place}]"] = word
    return found


def _settings(run: RunDir) -> dict[str, str]:
    """Return the values of a run's config as text, by dotted key; of a line, its arguments."""
    job = read_record(run.job)
    argv = _argv(job)
    if argv is not None:
        world_size = section(job.get("launch")).get("world_size")
        return {**_arguments(argv), "launch.world_size": str(world_size)}
    flat = flatten(section(job.get("config")) or {"launch": section(job.get("launch"))})
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in flat.items()
        if key not in _NOT_SETTINGS and not key.startswith(_NOT_SECTIONS)
    }
