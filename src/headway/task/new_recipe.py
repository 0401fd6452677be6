"""Writes a recipe of one's own: the smallest that trains, with its test."""

from __future__ import annotations

import re
from pathlib import Path

from headway.errors import UsageError
from headway.messages import language
from headway.task.registry import RECIPES

_TEMPLATE = Path(__file__).parent / "template"
"""The files with English comments; those with Chinese ones, with the same code, are in its folder `zh`."""


def plan_recipe(name: str, folder: Path) -> dict[Path, str]:
    """Return every file of a new recipe with its text; nothing is written."""
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or name in RECIPES:
        raise UsageError("recipes/name-not-free", name=name, known=", ".join(sorted(RECIPES)))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError("recipes/folder-not-empty", folder=folder)
    template = _TEMPLATE / "zh" if language() == "zh" else _TEMPLATE
    return {
        folder / path.name.replace("mytask", name): _rename(path.read_text(encoding="utf-8"), name)
        for path in sorted(template.glob("*.py"))
    }


def make_recipe(name: str, folder: Path) -> list[Path]:
    """Write a new recipe into a new or empty folder; return its files."""
    planned = plan_recipe(name, folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in planned.items():
        path.write_text(text, encoding="utf-8")
    return list(planned)


def _rename(text: str, name: str) -> str:
    camel = "".join(part.capitalize() for part in name.split("_"))
    return text.replace("mytask", name).replace("Mytask", camel)
