"""May somebody else's code run? What was typed may; what only a file names is asked about, or refused."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from headway.config import LoadedConfig, Recipe, is_of_the_system, is_trusted, name_variable, trust
from headway.errors import UsageError
from headway.machine import other_python
from headway.task import RECIPES, find_recipe

Ask = Callable[[Path], bool]
"""Asks the user whether code at a path may run."""


def recipe_finder(words: Sequence[str], ordered: Path | None = None, ask: Ask | None = None) -> Callable[[str], Recipe]:
    """Return how a command finds its recipe: what was typed is consent, a folder that a file names has to be trusted.

    Args:
        words: what was typed.
        ordered: the config file of a command that is an order to run it (`train`), where it is the user's own.
        ask: how to ask the user; none: nobody can answer.
    """
    typed = {os.path.realpath(os.path.expanduser(text)) for text in _typed(words, "recipe")}
    is_order = ordered is not None and _is_ours(ordered)

    def find(name: str) -> Recipe:
        folder = Path(name).expanduser()
        if name not in RECIPES and folder.is_dir():
            real = Path(os.path.realpath(folder))
            if str(real) in typed or is_order:
                _remember(real)
            else:
                require_trust(real, ask)
        return find_recipe(name)

    return find


def check_python(
    loaded: LoadedConfig, words: Sequence[str], ordered: Path | None = None, ask: Ask | None = None
) -> None:
    """Refuse an interpreter that only a file has named; call it before anything asks that interpreter."""
    python = loaded.config.env.python
    if python is None:
        return
    if python in _typed(words, "env.python") or (ordered is not None and _is_ours(ordered)):
        _remember(Path(python))
    else:
        require_python(python, ask)


def require_python(python: str, ask: Ask | None = None) -> None:
    """Refuse an interpreter that is neither the system's, nor the one set up here for MindSpore, nor trusted."""
    if "/" in python and python != other_python() and not is_of_the_system(Path(python)):
        require_trust(Path(os.path.abspath(python)), ask)


def require_trust(path: Path, ask: Ask | None = None) -> None:
    """Ask whether code may run, or refuse where nobody can answer.

    Raises:
        UsageError: it is not trusted.
    """
    if is_trusted(path):
        return
    if ask is not None and ask(path):
        _remember(path)
        return
    raise UsageError("cli/untrusted", path=path)


def _typed(words: Sequence[str], key: str) -> list[str]:
    """Return the values of a key, and a first word without one, as typed here or set in the environment."""
    variable = os.environ.get(name_variable(key))
    found = [] if variable is None else [variable]
    if key == "recipe" and words and "=" not in words[0] and not words[0].startswith("-"):
        found.append(words[0])
    for place, word in enumerate(words):
        name, sign, value = word.lstrip("-").partition("=")
        if name.replace("-", "_") == key and sign:
            found.append(value)
        elif name.replace("-", "_") == key and word.startswith("--") and place + 1 < len(words):
            found.append(words[place + 1])
        elif word == "--set" and place + 1 < len(words) and words[place + 1].startswith(f"{key}="):
            found.append(words[place + 1].partition("=")[2])
    return found


def _is_ours(file: Path) -> bool:
    try:
        return file.stat().st_uid == os.geteuid()
    except OSError:
        return False


def _remember(path: Path) -> None:
    # Consent holds for this command in any case; where it cannot be kept the next one asks again.
    with contextlib.suppress(OSError):
        trust(path)
