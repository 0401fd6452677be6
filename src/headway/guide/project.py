"""A project folder in which a guide's own commands work, word for word. Its files are thin: they call Headway."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

from headway.errors import UsageError
from headway.task import RECIPES

_PYTHON = b"@PYTHON@"
"""In the templates, this takes the place of the interpreter that Headway is installed in."""
_LINK = ".link"
"""A template whose name ends so holds where a link of the same name leads."""


def plan_project(recipe: str, folder: Path) -> dict[Path, bytes]:
    """Return every file of a recipe's project with its contents; nothing is written."""
    if recipe not in RECIPES:
        raise UsageError("recipes/no-guide", name=recipe, known=", ".join(sorted(RECIPES)))
    root = Path(str(files("headway.recipes") / recipe / "project"))
    found = sorted(path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    if not found:
        raise UsageError("recipes/no-guide", name=recipe, known=", ".join(sorted(RECIPES)))
    python = sys.executable.encode()
    return {folder / path.relative_to(root): path.read_bytes().replace(_PYTHON, python) for path in found}


def make_project(recipe: str, folder: Path) -> list[Path]:
    """Write a recipe's project into a new or empty folder; return its files."""
    planned = plan_project(recipe, folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError("recipes/folder-not-empty", folder=folder)
    for path, data in planned.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == _LINK:
            path.with_suffix("").symlink_to(data.decode())
            continue
        path.write_bytes(data)
        if data.startswith(b"#!"):
            path.chmod(0o755)
    return [path.with_suffix("") if path.suffix == _LINK else path for path in planned]
