"""The words behind a command: a recipe or a config file first, then changed values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from headway.config import LoadedConfig, Origin, load_config
from headway.errors import UsageError
from headway.machine import other_python
from headway.messages import follow_language
from headway.start.consent import Ask, check_python, recipe_finder
from headway.task import find_recipe
from headway.telemetry import RunDir, read_record

_CONFIG_ENDINGS = (".yaml", ".yml", ".json", ".jsonc", ".json5", ".toml", ".py")


def split_source(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the config file, if the first word is one, and the changed values; a recipe's name becomes one of them."""
    if not words or "=" in words[0] or words[0].startswith("-"):
        return None, list(words)
    first, rest = words[0], list(words[1:])
    if first.endswith(_CONFIG_ENDINGS) or Path(first).is_file():
        return first, rest
    return None, [f"recipe={first}", *rest]


def load_words(words: Sequence[str], *, is_order: bool = False, ask: Ask | None = None) -> LoadedConfig:
    """Return the config that the words ask for; its own language is used from here on.

    Args:
        is_order: the command runs what the config names; for one that only reads, naming it is not consent.
        ask: how to ask about code that only a file names; none: nobody can answer.
    """
    source, overrides = split_source(words)
    ordered = Path(source) if is_order and source is not None else None
    finder = recipe_finder(overrides, ordered, ask)
    loaded = load_config(source, recipe=finder, overrides=overrides, environ=os.environ)
    follow_language(loaded.config.lang)
    check_python(loaded, overrides, ordered, ask)
    return _with_python(loaded)


def _with_python(loaded: LoadedConfig) -> LoadedConfig:
    """Return the config with an interpreter that has the framework, where none was named and this one has it not."""
    is_open = loaded.framework == "mindspore" and loaded.config.env.python is None
    python = other_python() if is_open else None
    if python is None:
        return loaded
    config = loaded.config.model_copy(update={"env": loaded.config.env.model_copy(update={"python": python})})
    return replace(
        loaded,
        config=config,
        origins={**loaded.origins, "env.python": Origin("found beside this environment", "machine")},
    )


def refuse_foreign(run: RunDir) -> None:
    """Refuse a line that is not ours: nothing of it is saved."""
    if read_record(run.job).get("kind") == "foreign":
        raise UsageError("run/no-resume", run=run.name)


def reload(run: RunDir, overrides: Sequence[str], *, is_started: bool = False, ask: Ask | None = None) -> LoadedConfig:
    """Return the run's own config, in the layers it was made of, with the values changed.

    Args:
        is_started: another command of this user has begun the run and was allowed to.
    """
    refuse_foreign(run)
    # Runs of earlier versions and damaged ones have no origins: all their values then count as written in one file.
    stored = {key: origin for key, origin in read_record(run.origins).items() if isinstance(origin, str)} or None
    finder = find_recipe if is_started else recipe_finder(overrides, ask=ask)
    loaded = load_config(run.config, recipe=finder, overrides=list(overrides), environ=None, stored=stored)
    follow_language(loaded.config.lang)
    if not is_started:
        check_python(loaded, overrides, ask=ask)
    return loaded
