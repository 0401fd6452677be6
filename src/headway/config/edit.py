"""Values changed in the text of a config file. Comments, order and everything else stay as they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.config.edit_spot import Spot
from headway.config.keys import Keys
from headway.config.problems import Form, Place, Problems
from headway.config.read import read_form
from headway.config.recipe import Recipe
from headway.config.tree import Entry, Node, TreeBuilder
from headway.errors import ConfigError

Plain = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Written:
    """A setting as the file has it."""

    words: tuple[str, ...]
    """The names from the top of the file down to the value: a guide's own, a short one, or the dotted key's words."""
    entry: Entry
    alias: str | None
    """The guide's name it was found by."""


def edit_config(text: str, form: Form, changes: Mapping[str, Plain], recipe: Recipe) -> str:
    """Return the text with each value changed where it is written, under whatever name, or added where it is not.

    The result is read again: it holds the new values and otherwise what the file held before.

    Raises:
        ConfigError: a value is not plain (a sum, a name, an anchor others use), so that it cannot be changed alone.
    """
    keys, wanted = Keys(recipe), _read(text, form).plain()
    for key, value in changes.items():
        tree = _read(text, form)
        written = find_written(tree, keys)
        words = written[key].words if key in written else _name_new(key, tree, written, keys)
        before = _follow(wanted, words)
        is_same = type(before) is type(value) and before == value
        text = text if is_same else _change(text, form, Spot(tree, words, key), value)
        _put(wanted, words, value)
    got = _read(text, form).plain()
    if not _is_equal(got, wanted):
        raise ConfigError("config/edit-not-alone", keys=", ".join(changes))
    return text


def find_written(tree: Node, keys: Keys) -> dict[str, Written]:
    """Return every setting of a file by its dotted key."""
    found: dict[str, Written] = {}

    def walk(table: dict[str, Entry], prefix: str, words: tuple[str, ...]) -> None:
        for name, entry in table.items():
            inner = entry.node.value
            match = keys.find(f"{prefix}{name}", is_table=isinstance(inner, dict))
            if match.kind in ("section", "group") and isinstance(inner, dict):
                walk(inner, f"{match.key}.", (*words, name))
            elif match.kind == "value":
                found[match.key] = Written((*words, name), entry, match.alias)

    assert isinstance(tree.value, dict)
    walk(tree.value, "", ())
    return found


def _name_new(key: str, tree: Node, written: Mapping[str, Written], keys: Keys) -> tuple[str, ...]:
    """Return what to call a setting the file has not: as the guide does where the file follows the guide, else ours."""
    aliases = [name for name, target in keys.recipe.aliases.items() if target == key]
    for alias in aliases:
        *tables, leaf = alias.split(".")
        is_flat_file = any(one.alias and len(one.words) == 1 for one in written.values())
        has_home = isinstance(_follow(tree.plain(), tables), dict) if tables else is_flat_file
        if has_home and alias not in keys.recipe.implied:
            return (*tables, leaf)
    return tuple(key.split("."))


def _change(text: str, form: Form, spot: Spot, value: Plain) -> str:
    # Each editor is imported when its format is met, as each reader is.
    if form == "yaml":
        from headway.config.edit_yaml import edit_yaml

        return edit_yaml(text, spot, value)
    if form == "toml":
        from headway.config.edit_toml import edit_toml

        return edit_toml(text, spot, value)
    if form == "py":
        from headway.config.edit_py import edit_py

        return edit_py(text, spot, value)
    from headway.config.edit_json import edit_json

    return edit_json(text, spot, value)


def _read(text: str, form: Form) -> Node:
    problems = Problems()
    node = read_form(form, text, TreeBuilder(Place(0, form, form=form), problems))
    problems.raise_if_any()
    return node if node is not None and isinstance(node.value, dict) else Node({}, 0, 0)


def _follow(tree: Any, words: list[str] | tuple[str, ...]) -> Any:
    """Return what is at the end of the names, or None. Any: what JSON can hold."""
    for word in words:
        tree = tree.get(word) if isinstance(tree, dict) else None
    return tree


def _put(tree: dict[str, Any], words: tuple[str, ...], value: Plain) -> None:
    for word in words[:-1]:
        if not isinstance(tree.get(word), dict):
            tree[word] = {}
        tree = tree[word]
    tree[words[-1]] = value


def _is_equal(one: Any, other: Any) -> bool:
    """Say whether two trees hold the same; 1, 1.0 and true are three things. Any: what JSON can hold."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return type(one) is type(other) and bool(one == other)
