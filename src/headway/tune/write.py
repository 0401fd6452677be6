"""The winning values, written into the config: the rest of the file, comments and order stay as they are."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from headway.config import FORMS, LoadedConfig, Recipe, RunConfig, edit_config, flatten, layer_of, write_word
from headway.errors import ConfigError, UsageError
from headway.planner import Plan
from headway.tune.record import Settings, Value, key_of
from headway.tune.space import Space

YAML_ENDINGS = (".yaml", ".yml")


def list_changes(best: Settings, start: Settings, plan: Plan, config: RunConfig) -> dict[str, Value]:
    """Return dotted keys and their new values; the batch in the numbers the config itself speaks in."""
    changes: dict[str, Value] = {
        key_of(axis): best.value(axis)
        for axis in best.axes()
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
    if target is not None and target.suffix.lower() not in YAML_ENDINGS and str(target) != source:
        raise UsageError("tune/target-not-yaml", path=target)


def edit_file(path: Path, changes: Mapping[str, Value], recipe: Recipe) -> bytes:
    """Return what a config file would hold with the values changed; its byte order mark and line ends stay."""
    content = path.read_bytes()
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    text = content.removeprefix(mark).decode("utf-8")
    return mark + edit_config(text, FORMS[path.suffix.lower()], changes, recipe).encode("utf-8")


def rehearse_changes(space: Space, start: Settings, plan: Plan, config: RunConfig) -> list[dict[str, Value]]:
    """Return one set of changes for every axis that a search may move, so that each can be tried on the file first."""
    moved = {axis: [value for value in values if value != start.value(axis)] for axis, values in space.values.items()}
    return [list_changes(start.moved(axis, values[0]), start, plan, config) for axis, values in moved.items() if values]


def compose(loaded: LoadedConfig, changes: Mapping[str, Value]) -> str:
    """Return a new YAML file of all that somebody set for this run (no defaults, recipe, preset), and the changes."""
    values = loaded.config.model_dump(mode="json")
    tree: dict[str, Any] = {"recipe": loaded.config.recipe}
    for key, origin in loaded.origins.items():
        if layer_of(origin) not in ("file", "environment", "command line"):
            continue
        at: Any = values
        for word in key.split("."):
            at = at[word]
        _set(tree, key.split("."), at)
    for key, value in changes.items():
        _set(tree, key.split("."), value)
    yaml = YAML()
    yaml.width = 1 << 16
    out = io.StringIO()
    yaml.dump(tree, out)
    return out.getvalue()


def _set(tree: dict[str, Any], words: list[str], value: Any) -> None:
    for word in words[:-1]:
        tree = tree.setdefault(word, {})
    tree[words[-1]] = value


def find_differences(before: RunConfig, after: RunConfig, changes: Mapping[str, Value]) -> list[str]:
    """Return every key that reads back otherwise than it was, or than the changes say: `lr.base=0.1 ≠ 0.02`."""
    was, now = (flatten(one.model_dump(mode="json")) for one in (before, after))
    wanted = {**was, **changes}
    keys = [key for key in sorted({*wanted, *now}) if now.get(key) != wanted.get(key)]
    return [f"{write_word(key, now.get(key))} ≠ {write_word('', wanted.get(key))[1:]}" for key in keys]


def write_checked(path: Path, content: bytes, check: Callable[[Path], str]) -> None:
    """Put a file in place, whole or not at all, once it has been read back and gives what was measured.

    Args:
        check: reads a file and returns what is wrong with it, or nothing.
    """
    with written_beside(path, content) as part:
        wrong = check(part)
        if wrong:
            raise ConfigError("tune/not-written", path=path, why=wrong)
        if path.exists():
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path.resolve())


@contextmanager
def written_beside(path: Path, content: bytes) -> Iterator[Path]:
    """Keep a new text in a hidden file beside the old one for a while: there it is read, and from there it can move."""
    real = path.resolve()
    part = real.with_name(f".{real.stem}.{os.getpid()}{path.suffix}")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield part
    finally:
        part.unlink(missing_ok=True)
