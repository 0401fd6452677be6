"""What a key is, what it takes and what it is when nobody sets it; the same for editors as JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from headway.config.describe import describe_fields
from headway.config.field_types import read_wanted
from headway.config.keys import Keys
from headway.config.problems import Phrase
from headway.config.recipe import SIZED_PRESETS, Recipe
from headway.config.schema import RunConfig
from headway.errors import ConfigError
from headway.messages import Language, language
from headway.messages.keys import describe_key
from headway.secret import mask_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One key or section, described."""

    key: str
    description: str
    type: str
    """In words, in the language in use."""
    default: Any
    """Any: the value of any field; None also for a key that must be set and for a section."""
    origin: str
    """Which layer the default comes from: `default` or `recipe NAME`."""
    is_required: bool
    choices: tuple[Any, ...]
    aliases: tuple[str, ...]
    """The guide's own names for it."""
    presets: dict[str, Any]
    """Value in each preset that sets it."""
    keys: tuple[str, ...]
    """Keys of a section; empty for a single key."""


def explain(key: str, recipe: Recipe, lang: Language | None = None) -> Explained:
    """Return what a key (or a section, a guide's name, a unique tail) is, or raise with the nearest one."""
    keys = Keys(recipe)
    match = keys.find(keys.spell(key))
    if match.kind == "section":
        return _explain_section(match.key, keys, lang)
    if match.kind == "value":
        return _explain_value(match.key, keys, lang)
    if match.kind == "ambiguous":
        typed = f"headway config explain {match.others[0]}"
        raise ConfigError("config/ambiguous-key", key=key, others=", ".join(match.others), typed=typed)
    if match.kind == "ignored":
        raise ConfigError("config/ignored-key", key=key, recipe=recipe.name)
    shown, nearest = mask_secrets(key[:80]), keys.suggest(key)
    if nearest:
        typed = f"headway config explain {nearest[0]}"
        raise ConfigError("config/unknown-key-near", key=shown, nearest=nearest[0], typed=typed)
    raise ConfigError("config/unknown-key", key=shown)


def schema_json(recipe: Recipe) -> dict[str, Any]:
    """Return the JSON Schema of a config for this recipe, for editors."""
    schema = RunConfig.model_json_schema(mode="validation")
    inner = recipe.section.model_json_schema(mode="validation")
    definitions = {**schema.get("$defs", {}), **inner.pop("$defs", {}), "Task": inner}
    schema["$defs"] = definitions
    task = schema["properties"]["task"]
    schema["properties"]["task"] = {"$ref": "#/$defs/Task", "description": task["description"]}
    if recipe.presets:
        names = list(dict.fromkeys([*recipe.presets, *SIZED_PRESETS]))
        schema["properties"]["preset"] |= {"anyOf": [{"enum": names}, {"type": "null"}]}
    _take_none(schema)
    _take_other_names(schema, Keys(recipe))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _take_none(part: Any) -> None:
    """Let the word `none` stand for null everywhere, as the loader does. Any: any part of a JSON Schema."""
    if isinstance(part, dict):
        choices = part.get("anyOf")
        if isinstance(choices, list) and {"type": "null"} in choices:
            choices.append({"enum": ["none", "None"]})
        for inner in part.values():
            _take_none(inner)
    elif isinstance(part, list):
        for inner in part:
            _take_none(inner)


def _take_other_names(schema: dict[str, Any], keys: Keys) -> None:
    """Let the schema take every name the loader takes: dotted and short keys, a guide's own, and those it ignores.

    As patterns, so that an editor accepts them and still completes the keys' own names only.
    """
    patterns: dict[str, Any] = {}
    for key in (*keys.values, *keys.sections):
        taken = {*schema["properties"], *keys.groups}
        names = [name for name in keys.names_of(key) if name not in taken]
        if names:
            patterns[_any_of(names)] = _find_property(schema, key)
    if keys.recipe.ignored:
        patterns[_any_of(keys.recipe.ignored)] = {}
    for section in keys.sections:
        inner = [key.removeprefix(f"{section}.") for key in keys.values if key.startswith(f"{section}.")]
        dotted = {_any_of([name]): _find_property(schema, f"{section}.{name}") for name in inner if "." in name}
        if dotted:
            _resolve(schema, _find_property(schema, section))["patternProperties"] = dotted
    for name in keys.groups.difference(schema["properties"]):
        match = keys.find(name)
        value = [_find_property(schema, match.key)] if match.kind == "value" else []
        patterns[_any_of([name])] = {"anyOf": [{"type": "object"}, *value]}
    for name in keys.groups.intersection(keys.sections):
        # A guide's table with the name of one of ours holds the guide's keys as well.
        _resolve(schema, _find_property(schema, name))["additionalProperties"] = True
    for section in keys.sections:  # a section with nothing below it has its defaults
        _resolve(schema, _find_property(schema, section))["type"] = ["object", "null"]
    schema["patternProperties"] = patterns


def _any_of(names: Iterable[str]) -> str:
    return f"^({'|'.join(re.escape(name) for name in sorted(names))})$"


def _find_property(schema: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the part of a JSON Schema that describes a dotted key."""
    at = schema
    for name in key.split("."):
        at = _resolve(schema, at)["properties"][name]
    return at


def _resolve(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Return what a part refers to, itself where it refers to nothing; of `X | null` the X."""
    if "anyOf" in part:
        part = next(one for one in part["anyOf"] if "$ref" in one)
    reference = part.get("$ref")
    found: dict[str, Any] = schema["$defs"][reference.rpartition("/")[2]] if reference else part
    return found


def _explain_value(key: str, keys: Keys, lang: Language | None) -> Explained:
    recipe, info = keys.recipe, keys.values[key]
    wanted = read_wanted(info)
    from_recipe = key in recipe.defaults
    default = recipe.defaults[key] if from_recipe else _default(info)
    return Explained(
        key=key,
        description=_description(key, keys, lang),
        type=wanted.phrase().text(lang),
        default=to_jsonable_python(default),
        origin=f"recipe {recipe.name}" if from_recipe else "default",
        is_required=info.is_required() and not from_recipe,
        choices=tuple(wanted.choices),
        aliases=_aliases(key, recipe),
        presets={name: values[key] for name, values in recipe.presets.items() if key in values},
        keys=(),
    )


def _explain_section(key: str, keys: Keys, lang: Language | None) -> Explained:
    inner = tuple(name for name in keys.values if name.startswith(f"{key}."))
    return Explained(
        key=key,
        description=_description(key, keys, lang),
        type=Phrase("config/type-section").text(lang),
        default=None,
        origin="default",
        is_required=False,
        choices=(),
        aliases=(),
        presets={},
        keys=inner,
    )


def _description(key: str, keys: Keys, lang: Language | None) -> str:
    if (lang or language()) == "zh":
        # A recipe in a folder of its own has no Chinese; its own words are better than none.
        chinese = describe_key(key, keys.recipe.name)
        if chinese is not None:
            return chinese
    section, _, leaf = key.rpartition(".")
    owner = keys.sections[section] if section else RunConfig
    return owner.model_fields[leaf].description or describe_fields(owner).get(leaf, "")


def _default(info: FieldInfo) -> Any:
    """Any: the default of any field."""
    default = info.get_default(call_default_factory=True, validated_data={})
    return None if default is PydanticUndefined else default


def _aliases(key: str, recipe: Recipe) -> tuple[str, ...]:
    return tuple(alias for alias, target in recipe.aliases.items() if target == key)
