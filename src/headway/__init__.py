"""Headway takes a training job from one file to a finished model.

`run = headway.train("nanochat", depth=4); run.wait(); run.best`
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.api import RunHandle, check, diagnose, plan, resume, run, runs, train
    from headway.log_step import log

__version__ = "0.1.0"

_NAMES = {
    "RunHandle": "headway.api",
    "check": "headway.api",
    "diagnose": "headway.api",
    "log": "headway.log_step",
    "plan": "headway.api",
    "resume": "headway.api",
    "run": "headway.api",
    "runs": "headway.api",
    "train": "headway.api",
}
"""Public names and their modules, each imported when it is first used: `headway --help` and a rank need none."""

__all__ = ["RunHandle", "__version__", "check", "diagnose", "log", "plan", "resume", "run", "runs", "train"]


def __getattr__(name: str) -> object:
    """Load a public name."""
    if name not in _NAMES:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    found: object = getattr(importlib.import_module(_NAMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
