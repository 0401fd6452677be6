"""The winning values, written into the config: the rest of the file, comments and order stay as they are."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from headway.config import LoadedConfig, RunConfig
from headway.errors import ConfigError, UsageError
from headway.plan import Plan
from headway.tune.record import KEYS, Settings, Value

YAML_ENDINGS = (".yaml", ".yml")


def list_changes(best: Settings, start: Settings, plan: Plan, config: RunConfig) -> dict[str, Value]:
    """Return dotted keys and their new values; the batch in the numbers the config itself speaks in."""
    changes: dict[str, Value] = {
        key: best.value(axis)
        for axis, key in KEYS.items()
        if axis != "micro_batch" and best.value(axis) != start.value(axis)
    }
    if "parallel.workers" in changes and config.parallel.all_workers is not None:
        changes["parallel.all_workers"] = int(changes.pop("parallel.workers")) * plan.world_size
    if best.micro_batch != start.micro_batch:
        batch = config.batch
        if batch.all_devices is not None:
            changes["batch.all_devices"] = best.micro_batch * plan.world_size
        if batch.all_devices is None or batch.per_device is not None:
            changes["batch.per_device"] = best.micro_batch
        if batch.accumulation is not None or batch.total is None:
            changes["batch.accumulation"] = plan.micro_batch * plan.accumulation // best.micro_batch
    return changes


def refuse_unwritable(source: str | None, target: Path | None) -> None:
    """Refuse before the search what could not be written after it."""
    if target is not None and target.suffix.lower() not in YAML_ENDINGS:
        raise UsageError("tune/target-not-yaml", path=target)
    if target is None and source is not None and Path(source).suffix.lower() not in YAML_ENDINGS:
        raise UsageError("tune/source-not-yaml", path=source, near=Path(source).with_suffix(".yaml"))


def edit_yaml(text: str, changes: Mapping[str, Value], names: Mapping[str, str]) -> str:
    """Return the text with the values changed or added.

    Args:
        names: dotted key to the guide's own name, where the file uses that.
    """
    yaml = _yaml(text)
    tree = yaml.load(text)
    if tree is None:
        tree = CommentedMap()
    for key, value in changes.items():
        _set(tree, names.get(key, key).split("."), key.split("."), value)
    out = io.StringIO()
    yaml.dump(tree, out)
    return out.getvalue()


def _yaml(text: str) -> YAML:
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 1 << 16
    indents = [len(line) - len(line.lstrip(" ")) for line in text.splitlines() if line.startswith(" ")]
    step = min((indent for indent in indents if indent), default=2)
    yaml.indent(mapping=step, sequence=step + 2, offset=step)
    return yaml


def _set(tree: Any, path: list[str], plain: list[str], value: Value) -> None:
    """Set a value where the file has the key already, under the guide's name or ours; else add ours."""
    spots = [spot for words in (path, plain) for spot in (words, [".".join(words)])]
    for words in spots:
        at = tree
        for word in words[:-1]:
            at = at.get(word) if isinstance(at, dict) else None
        if isinstance(at, dict) and words[-1] in at:
            at[words[-1]] = value
            return
    at = tree
    for word in plain[:-1]:
        if not isinstance(at.get(word), dict):
            at[word] = CommentedMap()
        at = at[word]
    at[plain[-1]] = value


def compose(loaded: LoadedConfig, changes: Mapping[str, Value]) -> str:
    """Return a new YAML file of all that somebody set for this run (no defaults, recipe, preset), and the changes."""
    values = loaded.config.model_dump(mode="json")
    tree: dict[str, Any] = {"recipe": loaded.config.recipe}
    for key, origin in loaded.origins.items():
        if origin == "default" or origin.startswith(("recipe", "preset")):
            continue
        at: Any = values
        for word in key.split("."):
            at = at[word]
        _set(tree, key.split("."), key.split("."), at)
    for key, value in changes.items():
        _set(tree, key.split("."), key.split("."), value)
    yaml = YAML()
    yaml.width = 1 << 16
    out = io.StringIO()
    yaml.dump(tree, out)
    return out.getvalue()


def write_checked(path: Path, text: str, check: Callable[[Path], str]) -> None:
    """Put a file in place once it has been read back and gives what was measured.

    Args:
        check: reads a file and returns what is wrong with it, or nothing.
    """
    part = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        part.write_text(text, encoding="utf-8")
        wrong = check(part)
        if wrong:
            raise ConfigError("tune/not-written", path=path, why=wrong)
        if path.exists():
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path.resolve())
    finally:
        part.unlink(missing_ok=True)
