"""The registry of recipes.

In: a built-in name, or a folder of one's own with preset.py and task.py. Out: its `Recipe`; nothing is imported before
it is asked for, and never a framework. A folder becomes a package of this process, so that `Recipe.task` can then be
imported by name, and its files may import each other with `from .data import …`.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.machinery
import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from headway.config import Recipe
from headway.errors import UsageError
from headway.messages import add_texts

RECIPES: Mapping[str, str] = {
    "atlas": "headway.recipes.atlas.preset",
    "layoutmaster": "headway.recipes.layoutmaster.preset",
    "nanochat": "headway.recipes.nanochat.preset",
    "rdt": "headway.recipes.rdt.preset",
    "tfnet": "headway.recipes.tfnet.preset",
}
"""Built-in name to the module that holds its `RECIPE`."""

_PREFIX = "headway_recipe_"
"""Beginning of the package name that a folder of one's own gets."""


def find_recipe(name_or_folder: str) -> Recipe:
    """Return the recipe of a built-in name or of a folder."""
    module = RECIPES.get(name_or_folder)
    if module is not None:
        add_texts(name_or_folder, f"{module.rpartition('.')[0]}.texts")
        found = importlib.import_module(module)
        recipe: Recipe = found.RECIPE
        return replace(recipe, folder=Path(str(found.__file__)).parent)
    folder = Path(name_or_folder).expanduser()
    if folder.is_dir():
        return _load_folder(folder.resolve())
    known = ", ".join(sorted(RECIPES))
    near = difflib.get_close_matches(name_or_folder.lower(), RECIPES, n=1)
    if not near:
        raise UsageError("recipes/unknown", name=name_or_folder, known=known)
    raise UsageError(
        "recipes/unknown-near", name=name_or_folder, known=known, near=near[0], swap={name_or_folder: near[0]}
    )


def locate_in_recipe(error: BaseException) -> tuple[str, int] | None:
    """Return the file and line of recipe code that an exception came out of; None: it is not a recipe's.

    What the recipe's line called in torch or elsewhere belongs to it; what it called in Headway does not.
    """
    found, trace, module = None, error.__traceback__, ""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module.startswith(("headway.recipes.", _PREFIX)):
            found = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        elif module.startswith("headway."):
            found = None
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename and "importlib" in module:
        return error.filename, error.lineno or 0  # a line that cannot be read is in no frame
    return found


def _load_folder(folder: Path) -> Recipe:
    for file in ("preset.py", "task.py"):
        if not (folder / file).is_file():
            raise UsageError("recipes/folder-lacks", folder=folder, file=file)
    package, preset = _make_package(folder), folder / "preset.py"
    try:
        module = importlib.import_module(f"{package}.preset")
    except (ImportError, SyntaxError, NameError, TypeError, ValueError, AttributeError) as err:
        raise UsageError("recipes/will-not-load", file=preset, why=f"{type(err).__name__}: {err}") from err
    recipe = vars(module).get("RECIPE")
    if not isinstance(recipe, Recipe):
        raise UsageError("recipes/no-record", file=preset, kind=type(recipe).__name__)
    if (folder / "texts.py").is_file():
        add_texts(recipe.name, f"{package}.texts")
    prepare = f"{package}.{recipe.prepare}" if _is_own(folder, recipe.prepare) else recipe.prepare
    # A fresh process does not know the package yet, so its modules cannot be preloaded by name.
    preload = tuple(name for name in recipe.preload if not _is_own(folder, name))
    return replace(recipe, task=f"{package}.task", prepare=prepare, preload=preload, folder=folder)


def _is_own(folder: Path, module: str | None) -> bool:
    """Tell whether a module named by a folder's recipe is a file beside it (`data`) rather than an installed one."""
    return module is not None and module.isidentifier() and (folder / f"{module}.py").is_file()


def _make_package(folder: Path) -> str:
    """Make the folder importable under a name of its own, once a process; two folders of one name do not meet."""
    stem = re.sub(r"\W", "_", folder.name)
    name = f"{_PREFIX}{stem}_{hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]}"
    if name in sys.modules:
        return name
    first = folder / "__init__.py"
    if first.is_file():
        spec = importlib.util.spec_from_file_location(name, first, submodule_search_locations=[str(folder)])
    else:
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    assert spec is not None, "a .py file always has a loader"
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    if spec.loader is not None:
        spec.loader.exec_module(package)
    return name
