"""In what the surroundings of runs differ: machine, versions, variables, code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from headway.config import flatten
from headway.redact import redact
from headway.telemetry import section
from headway.ui.report import Facts, tables

_MOVES: Final = ("free", "clock_ahead", "findings", "schema", "out", "disk_place", "ports", "probe_", "used", "around.")
"""Readings that are others every minute, or where the run is."""
_MOST: Final = 60


def differences(runs: Sequence[Facts]) -> list[tuple[str, list[str]]]:
    """Return what the runs do not share, each with its value in every run."""
    if len(runs) < 2:
        return []
    told = [_surroundings(facts) for facts in runs]
    keys = dict.fromkeys(key for one in told for key in one)
    rows = [(key, [one.get(key, "") for one in told]) for key in keys]
    return [row for row in rows if len(set(row[1])) > 1][:_MOST]


def _surroundings(facts: Facts) -> dict[str, str]:
    command = tables.describe_command(facts)
    git = section(facts.command.get("git")) or facts.command
    found = {
        "python": str(section(facts.machine.get("framework")).get("python_version") or ""),
        "code: commit": command["commit"],
        "code: changes": f"{len(command['diff'].splitlines())} lines" if git.get("diff") else "",
        "cwd": command["cwd"],
    }
    for key, value in flatten(facts.machine).items():
        if value not in (None, "", [], {}) and not any(word in key for word in _MOVES):
            found[f"machine: {key}"] = tables.hide(key, _text(value))
    names = facts.command.get("env")
    if isinstance(names, list):
        found |= {
            f"variable: {redact(str(name))}": "set" for name in names if str(name) not in ("_", "OLDPWD", "SHLVL")
        }
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:200]
