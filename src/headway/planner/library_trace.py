"""A model that no formula here knows: the ranks' transformers or timm builds it, and two steps of it are traced."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from headway.errors import HeadwayError, PlanError, UsageError
from headway.machine import MachineReport
from headway.planner.models.public import Settings, read_words
from headway.planner.script_forecast import ScriptForecast, foresee_script
from headway.planner.script_trace import ScriptLine

WORDS = ("batch", "accumulation", "seq", "image", "precision", "optimizer", "recompute")
"""Settings that a trace of another library's model understands."""
_CHOICES = {
    "precision": ("bf16", "fp16", "bf16-pure", "fp32"),
    "optimizer": ("adamw", "adamw-fused", "sgd"),
    "recompute": ("none", "full"),
}


def _may_know(name: str, python: str) -> bool:
    """Say whether it is worth the seconds to ask: a file, a cached model, or an interpreter that may have timm."""
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    cached = home / "hub" / f"models--{name.replace('/', '--')}"
    is_here = Path(python).resolve() == Path(sys.executable).resolve()
    return Path(name).exists() or cached.is_dir() or not is_here or importlib.util.find_spec("timm") is not None


def foresee_library(
    name: str, words: Sequence[str], machine: MachineReport, unknown: HeadwayError, tell: Callable[[], None]
) -> ScriptForecast:
    """Return how a library's model would do on a machine; takes seconds.

    Args:
        words: settings, as on the command line.
        unknown: what is raised when no library knows the name either.
        tell: called before the seconds it takes.
    """
    if not _may_know(name, machine.framework.python):
        raise unknown
    given = read_words(words, WORDS)
    for key, choices in _CHOICES.items():
        if given.get(key, choices[0]) not in choices:
            raise UsageError("plan/model-odd-value", key=key, value=given[key], choices=", ".join(choices))
    settings = Settings(**given)
    told = {key: getattr(settings, key) for key in WORDS} | {"image": given.get("image", 0)}
    ranks = sum(not gpu.lost for gpu in machine.gpus)
    if not ranks:
        raise UsageError("plan/model-needs-gpu", name=name)
    line = ScriptLine(
        text=name,
        entry="headway.trace.named",
        kind="module",
        args=(json.dumps({"name": name, "settings": told}),),
        ranks=ranks,
        local_ranks=ranks,
        has_gpus=True,
        is_launched=True,
        env={"HF_HUB_OFFLINE": "1"},
        python=machine.framework.python,
    )
    tell()
    try:
        found = foresee_script(line, machine)
    except PlanError as err:
        if "UnknownModelError" in str(err.facts.get("why", "")):
            raise unknown from err
        raise PlanError("plan/model-untraced", name=name, why=err.facts.get("why", err.code)) from err
    return replace(found, line=replace(found.line, entry=name, args=tuple(words)))
