"""The guide's numbers at the size that is trained here: its own, or a small model where there is no GPU.

A value that somebody typed or edited is used at the small size too, wherever that is possible. The numbers that the
guide itself wrote describe its own model and machine; where the small size has others, they are listed in one block.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from headway.config import FROM_RECIPE, WORDS_OF, LoadedConfig, RunConfig, flatten, layer_of, load_config, write_word
from headway.errors import PlanError
from headway.guide.flags import FULL_SIZE
from headway.machine import inspect_machine
from headway.messages import say
from headway.planner import BatchWish, resolve_batch
from headway.task import find_recipe

_ROOM = 4
"""How many times the small model's own size an edited one may have; beyond that a step takes minutes on a CPU."""
_NAMES = ("recipe", "preset")
_IN_STEPS = {"train.epochs": "steps", "eval.every_epochs": "every", "save.every_epochs": "every"}
"""Lengths in epochs, to the field beside them that counts steps."""
_DATA = ("data_dir", "_data_path", "_label_path")
_WORKERS = ("parallel.workers", "parallel.all_workers")


def has_gpu() -> bool:
    """Say whether this machine has a GPU that can be used."""
    return any(not gpu.lost for gpu in inspect_machine(Path.cwd()).gpus)


def size_line(is_full: bool, size: str) -> str:
    """Return the first line: which size is trained here, and how to get the other."""
    return say("guide/full" if is_full else "guide/small", size=size, flag=FULL_SIZE)


def layers_text(width: int, layers: int) -> str:
    """Return the size of a small model for the first line."""
    return say("guide/size-layers", width=width, layers=layers)


def load(source: str | Path | None, words: Sequence[str] = ()) -> LoadedConfig:
    """Return the config as `headway train SOURCE WORDS…` reads it: the environment counts here too."""
    return load_config(source, recipe=find_recipe, overrides=words, environ=os.environ)


def template_of(recipe: str, path: Path) -> Path | None:
    """Return the file as `headway new` writes it; none where the project never had one of this name."""
    root = Path(str(files("headway.recipes") / recipe / "project"))
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    found = root / path
    return found if not path.is_absolute() and ".." not in path.parts and found.is_file() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """How a guide's numbers are taken to the small size."""

    recipe: str
    script: str
    """The project's script that sets what nobody typed, as the plan names it."""
    full: tuple[str, ...]
    """Words that make the guide's file its own size: `preset=published`."""
    of_size: Callable[[str], bool]
    """Tells keys that describe the guide's model."""
    holds: Callable[[str, LoadedConfig], bool]
    """Tells which numbers of the guide's own file mean the same at the small size."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Key to the message code of the reason why it is other at the small size, where no usual one is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is trained."""

    source: str
    """The config file."""
    words: tuple[str, ...]
    """Settings over it."""
    full_words: tuple[str, ...]
    """The same at the guide's size."""
    guide: LoadedConfig
    """What the guide's file and command say, at the guide's size."""
    loaded: LoadedConfig
    """What is trained here."""
    typed: tuple[str, ...]
    """What was typed."""
    notes: tuple[str, ...]
    """Settings that are not used, with the value used instead and why; one block, empty at the guide's size."""

    @property
    def config(self) -> RunConfig:
        """The whole config."""
        return self.loaded.config


def choose(
    sized: Sized,
    source: Path,
    typed: Sequence[str],
    *,
    is_full: bool,
    own: Sequence[str] = (),
    adapted: Sequence[str] = (),
) -> Choice:
    """Return what `headway train` is given: the guide's file as it is, or with the small size's values over it.

    Args:
        typed: what the user typed.
        own: what the script sets at every size, below what was typed.
        adapted: what was typed, brought to the small size; above all else there.
    """
    recipe = f"recipe={sized.recipe}"
    full = (*words_of(sized.script, recipe, *sized.full, *own), *typed)
    guide = load(source, full)
    if is_full:
        return Choice(
            source=str(source), words=full, full_words=full, guide=guide, loaded=guide, typed=tuple(typed), notes=()
        )
    small = load(None, [recipe, *own])
    values, usual = (flatten(one.config.model_dump(mode="json")) for one in (guide, small))
    before = _template_values(sized, source)
    fates = _fates(sized, guide, values, usual, before)
    replaced = [f"{FROM_RECIPE}{key}" for key, fate in fates.items() if fate == "replaced" and key not in _NAMES]
    words = [
        *replaced,
        *words_of(sized.script, recipe, *own, *_length_words(guide, fates)),
        *typed,
        *words_of(sized.script, *adapted),
    ]
    words += words_of(sized.script, *_worker_words(load(source, words).config))
    loaded = load(source, words)
    notes = _notes(sized, guide, loaded)
    return Choice(
        source=str(source),
        words=tuple(words),
        full_words=full,
        guide=guide,
        loaded=loaded,
        typed=tuple(typed),
        notes=notes,
    )


def words_of(script: str, *words: str) -> list[str]:
    """Return settings as a script's own, so that the plan does not call them typed."""
    return [f"{WORDS_OF}{script}", *words, WORDS_OF] if words else []


def _worker_words(config: RunConfig) -> list[str]:
    """Return fewer loader processes than asked for, where this machine has not as many cores."""
    cores, ranks = os.cpu_count() or 1, config.parallel.cpus or 1
    most = {"parallel.workers": max(1, cores // ranks), "parallel.all_workers": cores}
    asked = {"parallel.workers": config.parallel.workers, "parallel.all_workers": config.parallel.all_workers}
    return [write_word(key, most[key]) for key, value in asked.items() if value is not None and value > most[key]]


def _template_values(sized: Sized, source: Path) -> dict[str, Any]:
    """Return what the guide's own file sets; nothing for a file that is somebody's own, in which all is edited."""
    file = template_of(sized.recipe, source)
    if file is None:
        return {}
    loaded = load_config(file, recipe=find_recipe, overrides=[f"recipe={sized.recipe}", *sized.full])
    values = flatten(loaded.config.model_dump(mode="json"))
    return {key: values[key] for key, origin in loaded.origins.items() if layer_of(origin) == "file"}


def _fates(
    sized: Sized,
    guide: LoadedConfig,
    values: Mapping[str, Any],
    usual: Mapping[str, Any],
    before: Mapping[str, Any],
) -> dict[str, str]:
    """Return what becomes of each value of the file: `edited` and `holds` are used, `replaced` is not.

    What a guide's key means besides itself goes with it. Any: values of many types.
    """
    leads = {also: key for key, alias in guide.guide_names.items() for also in guide.recipe.implied.get(alias, {})}
    fates: dict[str, str] = {}
    for key in [key for key, origin in guide.origins.items() if layer_of(origin) == "file"]:
        if key in leads and key not in guide.guide_names:
            continue
        is_edited = key not in before or before[key] != values[key]
        if is_edited and _fits(key, values[key], usual[key], sized):
            fates[key] = "edited"
        else:
            fates[key] = "holds" if not is_edited and sized.holds(key, guide) else "replaced"
    for also, key in leads.items():
        if layer_of(guide.origins[also]) == "file" and key in fates:
            fates.setdefault(also, fates[key])
    return fates


def _length_words(guide: LoadedConfig, fates: Mapping[str, str]) -> list[str]:
    """Return the other length taken back where the file counts epochs: the recipe's, or epochs if steps are asked."""
    is_typed = layer_of(guide.origins["train.epochs"]) in ("environment", "command line")
    if not is_typed and fates.get("train.epochs") not in ("edited", "holds"):
        return []
    if asks_for_steps(guide):
        return [] if is_typed else ["train.epochs=null"]
    return ["train.steps=null"]


def _fits(key: str, value: Any, usual: Any, sized: Sized) -> bool:
    """Say whether an edited value can be used at the small size. Any: values of many types."""
    if not sized.of_size(key):
        return True
    is_number = isinstance(value, int | float) and isinstance(usual, int | float)
    return is_number and 0 < value <= _ROOM * usual


def _notes(sized: Sized, guide: LoadedConfig, loaded: LoadedConfig) -> tuple[str, ...]:
    said, used = (flatten(one.config.model_dump(mode="json")) for one in (guide, loaded))
    lines = []
    for key, origin in guide.origins.items():
        if layer_of(origin) not in ("file", "command line", "environment") or said[key] == used[key]:
            continue
        if key in _NAMES or key not in guide.guide_names:
            continue
        why = "size" if sized.of_size(key) else "cores" if key in _WORKERS else "small"
        # A path of the guide's own that does not hold is one where nothing is.
        why = "data" if key.endswith(_DATA) else why
        reason = say(sized.why.get(key) or f"guide/unused-{why}", cores=os.cpu_count() or 1)
        name = guide.guide_names[key]
        lines.append(f"  {name}: {_plain(said[key])} → {_instead(key, used[key], sized, loaded)}  ({reason})")
    return (say("guide/unused", num=len(lines), flag=FULL_SIZE), *lines) if lines else ()


def _instead(key: str, value: Any, sized: Sized, loaded: LoadedConfig) -> str:
    """Return the value used in place of the guide's; where none is set, the plan's. Any: values of many types."""
    if value is None and key in _WORKERS:
        return say("guide/each-rank", num=loaded.config.parallel.workers)
    steps = loaded.config.model_dump()[key.split(".")[0]].get(_IN_STEPS.get(key, ""))
    if value is None and steps:
        return say("guide/in-steps", num=steps)
    if value is None and key.startswith(("batch.", "parallel.")):
        return _planned_batch(key, loaded) or say("guide/unset-planned")
    return say("guide/unset-own") if value is None and sized.of_size(key) else _plain(value)


def _planned_batch(key: str, loaded: LoadedConfig) -> str | None:
    """Return the batch that the plan makes of what is set, on the CPU ranks of the small size."""
    batch, parallel, tokens = loaded.config.batch, loaded.config.parallel, loaded.recipe.tokens_per_sample
    wish = BatchWish(
        per_device=batch.per_device,
        total=batch.total,
        accumulation=batch.accumulation,
        unit=batch.unit,
        world_size=1 if parallel.strategy == "single" else parallel.cpus,
        tokens_per_sample=tokens(loaded.config.task) if tokens is not None else None,
    )
    try:
        made = resolve_batch(wish)
    except PlanError:  # the plan refuses it in its own words
        return None
    values = {
        "batch.per_device": made.per_device,
        "batch.total": made.samples * wish.unit_size,
        "batch.all_devices": made.samples,
    }
    return _plain(values[key]) if key in values else None


def _plain(value: Any) -> str:
    """Return a value as a person writes it. Any: values of many types."""
    if value is None:
        return say("guide/unset")
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def changed_words(before: RunConfig, now: RunConfig, keys: tuple[str, ...] = ("",)) -> list[str]:
    """Return what is said now and was not when the run began, of keys that begin so."""
    old, new = flatten(before.model_dump(mode="json")), flatten(now.model_dump(mode="json"))
    changed = [key for key, value in new.items() if key not in old or old[key] != value]
    return [write_word(key, new[key]) for key in changed if key.startswith(keys)]


def asks_for_steps(loaded: LoadedConfig) -> bool:
    """Say whether somebody counts the run's length in steps, and not the recipe alone."""
    return loaded.config.train.steps is not None and layer_of(loaded.origins["train.steps"]) != "recipe"
