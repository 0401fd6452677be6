"""Every key a config may hold, and what a shorter or a guide's own name for one means."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from headway.config.field_types import find_section
from headway.config.recipe import Recipe
from headway.config.schema import RunConfig

_DATA = re.compile(r"(?:train_)?data(?:_?set)?s?(?:_?(?:path|root|folder|directory|file))?")
_MOST_LETTERS = 80
"""Of a misspelt key, looked at for the nearest right one; comparing is quadratic."""


@dataclass(frozen=True, slots=True)
class Match:
    """What a name means."""

    kind: Literal["value", "section", "group", "ignored", "ambiguous", "unknown"]
    """`group`: no key itself, but guide keys begin with it (`data` of `data.batch_size`)."""
    key: str
    """Dotted key; for `ignored`, the message code of the reason."""
    alias: str | None = None
    """The guide's name it was found by."""
    others: tuple[str, ...] = ()
    """Candidates of an ambiguous name."""


class Keys:
    """The keys of the general config and of one recipe's section."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.values: dict[str, FieldInfo] = {}
        """Dotted key to field, in the order of the schema."""
        self.sections: dict[str, type[BaseModel]] = {}
        self._walk(RunConfig, "")
        self._tails: dict[str, list[str]] = {}
        for key in self.values:
            tail = key
            while "." in tail:
                tail = tail.partition(".")[2]
                self._tails.setdefault(tail, []).append(key)
        guide = (*recipe.aliases, *recipe.ignored)
        self.groups = {name[:end] for name in guide for end in range(len(name)) if name[end] == "."}
        """Tables in which guide keys are written (`data` of `data.batch_size`)."""

    def find(self, name: str, *, is_table: bool = False) -> Match:
        """Return what a name means: the key itself, a guide's name, a field of the recipe, a tail only one key has."""
        if name in self.values:
            return Match("value", name)
        if name in self.sections:
            return Match("section", name)
        if name in self.recipe.aliases:
            return Match("value", self.recipe.aliases[name], alias=name)
        if name in self.recipe.ignored:
            return Match("ignored", self.recipe.ignored[name], alias=name)
        if is_table and name in self.groups:
            return Match("group", name)
        if f"task.{name}" in self.values:
            return Match("value", f"task.{name}")
        if f"task.{name}" in self.sections:
            return Match("section", f"task.{name}")
        owners = self._tails.get(name, [])
        if len(owners) == 1:
            return Match("value", owners[0])
        return Match("ambiguous", name, others=tuple(owners)) if owners else Match("unknown", name)

    def spell(self, name: str) -> str:
        """Return the name as it is spelt here: case and hyphens do not count in words and variables."""
        if self.find(name, is_table=True).kind != "unknown":
            return name
        folded = name.replace("-", "_").casefold()
        known = (*self.values, *self.sections, *self._tails, *self.recipe.aliases, *self.recipe.ignored)
        return next((spelt for spelt in known if spelt.casefold() == folded), name)

    def names_of(self, key: str) -> tuple[str, ...]:
        """Return every name that means a key: dotted, as short as it is unique, and the guide's own."""
        short = [name for name, owners in self._tails.items() if owners == [key]]
        ours = [key.removeprefix("task.")] if key.startswith("task.") else []
        guide = [alias for alias, target in self.recipe.aliases.items() if target == key]
        return tuple(dict.fromkeys(name for name in (key, *short, *ours, *guide) if self.find(name).key == key))

    def suggest(self, name: str) -> tuple[str, ...]:
        """Return the keys nearest to a misspelt one, nearest first."""
        name = name[:_MOST_LETTERS]
        if _DATA.fullmatch(name.lower().replace(".", "_").replace("-", "_")):
            # Other trainers' names of it share few letters with ours.
            data = [key for key in self.values if key.endswith(".data_dir")]
            if data:
                return tuple(data)
        leaf = name.rpartition(".")[2]
        spelt = {key: key for key in (*self.values, *self.sections)}
        spelt |= {alias: alias for alias in self.recipe.aliases}
        scores: dict[str, float] = {}
        for known in (*spelt, *self._tails):
            score = difflib.SequenceMatcher(None, name, known).ratio()
            if "." in name:
                score = max(score, difflib.SequenceMatcher(None, leaf, known.rpartition(".")[2]).ratio() - 0.05)
            if score < 0.6:
                continue
            for key in [spelt[known]] if known in spelt else self._tails[known]:
                scores[key] = max(score, scores.get(key, 0.0))
        return tuple(sorted(scores, key=lambda key: (-scores[key], key))[:3])

    def _walk(self, section: type[BaseModel], prefix: str) -> None:
        for name, info in section.model_fields.items():
            key = f"{prefix}{name}"
            inner = self.recipe.section if key == "task" else find_section(info.annotation)
            if inner is None:
                self.values[key] = info
            else:
                self.sections[key] = inner
                self._walk(inner, f"{key}.")
