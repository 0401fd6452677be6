"""The gate: settings against the schema, every wrong value with what it should be and what to type."""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from headway.config.field_types import Wanted, read_wanted
from headway.config.keys import Keys
from headway.config.layers import Layers, Setting
from headway.config.paths import expand_path
from headway.config.problems import DEFAULT, RECIPE_LAYER, Place, Problems
from headway.config.scalar import read_scalar
from headway.config.schema import RunConfig
from headway.config.spelling import show_value, write_setting
from headway.errors import HeadwayError

_YES_NO = {"yes": True, "on": True, "y": True, "no": False, "off": False, "n": False}


def check_settings(layers: Layers, keys: Keys, problems: Problems) -> RunConfig | None:
    """Return the checked config, or None after noting what is wrong."""
    values = {key: _read_setting(keys, key, setting, problems) for key, setting in layers.settings.items()}
    nested = _nest(values, keys)
    task = _check_section(keys.recipe.section, nested.pop("task"), "task", problems, layers, keys)
    config = _check_section(RunConfig, nested, "", problems, layers, keys)
    if task is None or not isinstance(config, RunConfig):
        return None
    return config.model_copy(update={"task": task})


def _read_setting(keys: Keys, key: str, setting: Setting, problems: Problems) -> Any:
    """Return the plain value: the word `none`, which TOML needs, is null; `~` in a path is the home. Any: any value."""
    value = setting.node.plain()
    if not isinstance(value, str) or key not in keys.values:
        return value
    wanted = read_wanted(keys.values[key])
    if value in ("none", "None") and "null" in wanted.kinds and value not in wanted.choices:
        return None
    # What a recipe sets keeps its `~`, so that a saved config says where such files are on any machine.
    if wanted.is_path and setting.place.layer != RECIPE_LAYER:
        path = expand_path(value)
        if path is None:
            problems.add(_place_of(setting), "config/path-literal", key=setting.alias or key, got=value)
        return value if path is None else path
    return value


def _nest(values: Mapping[str, Any], keys: Keys) -> dict[str, Any]:
    """Return dotted keys as tables. Every section is there, so that no default section has to be built and checked."""
    root: dict[str, Any] = {}
    for section in keys.sections:
        outer, _, leaf = section.rpartition(".")
        table = _find_table(root, outer)
        if table is not None and leaf not in table:
            seed = _seed(keys, outer, leaf)
            if seed is not None:
                table[leaf] = seed
    for key, value in values.items():
        section, _, leaf = key.rpartition(".")
        table = root
        for part in section.split(".") if section else ():
            table = table.setdefault(part, {})
        table[leaf] = value
    return root


def _find_table(root: dict[str, Any], section: str) -> dict[str, Any] | None:
    table: Any = root
    for part in section.split(".") if section else ():
        table = table.get(part) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else None


def _seed(keys: Keys, outer: str, leaf: str) -> dict[str, Any] | None:
    """Return what a section starts from: its class's defaults, or the instance its field names, or nothing."""
    if not outer:
        return {}
    info = keys.sections[outer].model_fields[leaf]
    if info.is_required():
        return {}
    default = info.get_default(call_default_factory=True, validated_data={})
    return default.model_dump(mode="json") if isinstance(default, BaseModel) else None


def _check_section(
    model: type[BaseModel], values: dict[str, Any], prefix: str, problems: Problems, layers: Layers, keys: Keys
) -> BaseModel | None:
    try:
        # Through JSON, because pydantic's strict mode takes a list for a tuple only there.
        return model.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        seen: set[str] = set()
        for detail in error.errors(include_url=False):
            key = _key_of(detail, prefix, keys)
            if key not in seen and key not in layers.broken:
                seen.add(key)
                _note(detail, key, problems, layers, keys)
        return None
    except HeadwayError as error:  # a recipe's own check of keys that must agree
        problems.add(Place(3, f"recipe {keys.recipe.name}"), error.code, **error.facts)
        return None


def _key_of(detail: ErrorDetails, prefix: str, keys: Keys) -> str:
    """Return the dotted key an error belongs to: its location without the arms of unions and indexes of lists."""
    parts = [prefix] if prefix else []
    known = prefix
    for part in detail["loc"]:
        parts.append(str(part))
        path = ".".join(parts)
        if path in keys.values or path in keys.sections:
            known = path
    return known


def _note(detail: ErrorDetails, key: str, problems: Problems, layers: Layers, keys: Keys) -> None:
    setting = layers.settings.get(key)
    place = _place_of(setting)
    if "/" in detail["type"]:  # a recipe's own check, with its own message code
        problems.add(place, detail["type"], **detail.get("ctx", {}))
    elif detail["type"] == "missing":
        typed = write_setting("words", f"{key}.{detail['loc'][-1]}" if key in keys.sections else key, "VALUE")
        problems.add(place, "config/missing", key=typed.partition("=")[0], typed=typed)
    elif setting is None or key not in keys.values or detail["type"] in ("value_error", "assertion_error"):
        why = detail["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        problems.add(place, "config/refused", key=key, why=why)
    else:
        wanted = read_wanted(keys.values[key])
        named = setting.alias or key  # as it was written: a guide's own name, or ours
        code, remedy = _remedy(setting, named, wanted)
        facts = {"got": show_value(setting.node.plain()), "wanted": wanted.phrase(), "typed": remedy or ""}
        problems.add(place, code, key=named, words=_explained(named, layers, keys), **facts)


def _explained(name: str, layers: Layers, keys: Keys) -> str:
    """Return what `headway config explain` needs to find a name: the recipe too, where the name is one of its own."""
    recipe = layers.settings.get("recipe")
    is_own = name in keys.recipe.aliases or name.partition(".")[0] == "task"
    return f"{name} --recipe {shlex.quote(str(recipe.node.plain()))}" if is_own and recipe is not None else name


def _place_of(setting: Setting | None) -> Place:
    if setting is None:
        return DEFAULT
    node = setting.node
    return replace(setting.place, line=node.line, column=node.column) if node.line else setting.place


def _remedy(setting: Setting, key: str, wanted: Wanted) -> tuple[str, str | None]:
    """Return the message code for a wrong value and what to type instead, when that can be known."""
    value, form = setting.node.plain(), setting.place.form
    if key == "name" and isinstance(value, str):
        return "config/not-a-name", None
    if isinstance(value, str):
        read = read_scalar(value.strip())
        if (isinstance(read, bool) and wanted.takes("bool")) or _is_number_for(read, wanted):
            return "config/quoted", write_setting(form, key, _as_wanted(read, wanted))
        if value.lower() in _YES_NO and wanted.takes("bool"):
            return "config/yes-no", write_setting(form, key, _YES_NO[value.lower()])
        choices = [choice for choice in wanted.choices if isinstance(choice, str)]
        near = difflib.get_close_matches(value[:40].lower(), choices, n=1, cutoff=0.5)
        if near:
            return "config/not-a-choice", write_setting(form, key, near[0])
    elif isinstance(value, float) and value.is_integer() and "int" in wanted.kinds and "float" not in wanted.kinds:
        return "config/not-whole", write_setting(form, key, int(value))
    elif isinstance(value, bool | int | float) and "text" in wanted.kinds:
        words = "true" if value is True else "false" if value is False else repr(value)
        return "config/needs-quotes", write_setting(form, key, words)
    return "config/wrong-value", None


def _is_number_for(read: object, wanted: Wanted) -> bool:
    if isinstance(read, bool) or not isinstance(read, int | float):
        return False
    return "float" in wanted.kinds or ("int" in wanted.kinds and float(read).is_integer())


def _as_wanted(read: object, wanted: Wanted) -> object:
    is_whole = isinstance(read, float) and "float" not in wanted.kinds and "int" in wanted.kinds
    return int(read) if is_whole and isinstance(read, float) else read
