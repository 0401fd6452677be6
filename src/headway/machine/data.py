"""Whether a recipe's data is where its config says. Nothing is made or changed: preparing is the work of the start."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headway.config import Recipe
from headway.errors import HeadwayError
from headway.machine.record import Finding
from headway.units import count

_PATH_KEY = re.compile(r"(?:^|_)(?:path|dir|file|folder|root|shards|checkpoint|weights|manifest|annotations?)s?$")
_MADE_HERE = re.compile(r"(?:^|_)(?:out|output|cache|base|work|log|save)(?:_|$)")
"""Keys whose place is made when it is absent."""


def judge_data(recipe: Recipe, section: Any) -> Iterator[Finding]:
    """Yield what is wrong with the data of this config. Any: the recipe's own section.

    A module that prepares may also have `check(section)`, which only looks and raises what preparing would.
    """
    absent = [(key, path) for key, path in _paths(section) if not path.exists()]
    for key, path in absent:
        yield Finding(code="machine/data-absent", level="stop", facts={"key": f"task.{key}", "path": str(path)})
    try:
        look = getattr(importlib.import_module(recipe.prepare), "check", None) if recipe.prepare else None
        if look is not None:
            look(section)
        samples = recipe.train_samples(section) if recipe.train_samples else None
    except HeadwayError as refused:
        if not absent:
            facts = {"why": refused.text(), "fix": refused.hint()}
            yield Finding(code="machine/data-refused", level="stop", facts=facts)
        return
    if samples:
        yield Finding(code="machine/data-ready", level="ok", facts={"num": count(samples)})


def _paths(section: Any) -> Iterator[tuple[str, Path]]:
    """Yield the keys of a section that name something which has to be there."""
    fields = type(section).model_fields if section is not None else {}
    is_made = "synthetic" in fields and section.synthetic
    for key in fields:
        value = getattr(section, key)
        if is_made and key == "data_dir":  # the start makes a synthetic set there
            continue
        if isinstance(value, str) and value and _PATH_KEY.search(key) and not _MADE_HERE.search(key):
            yield key, Path(value).expanduser()
