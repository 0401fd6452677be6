"""One layer after the other as settings by dotted key: recipe, preset, file, environment, command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from headway.config.field_types import read_wanted
from headway.config.keys import Keys, Match
from headway.config.overrides import Word, read_value
from headway.config.problems import Phrase, Place, Problems
from headway.config.spelling import write_setting
from headway.config.tree import Entry, Node, make_node
from headway.messages import say
from headway.secret import find_secret, name_of_secret


@dataclass(frozen=True, slots=True)
class Setting:
    """A value for a dotted key."""

    node: Node
    place: Place
    """Where the key was written."""
    is_implied: bool = False
    """Not written itself: a guide's key means it as well."""
    alias: str | None = None
    """The guide's own name it was written with."""


class Layers:
    """Settings of all layers so far; a later layer's value replaces an earlier one's."""

    def __init__(self, keys: Keys, problems: Problems) -> None:
        self.settings: dict[str, Setting] = {}
        self.warnings: list[tuple[str, dict[str, object]]] = []
        self.broken: set[str] = set()
        """Keys about which a problem has been noted; whether they are missing or wrong is not asked again."""
        self._keys = keys
        self._problems = problems

    def add_recipe(self, values: Mapping[str, Any], place: Place) -> None:
        """Add a recipe's defaults or one of its presets. Any: plain values of many types."""
        layer = _Layer()
        for name, value in values.items():
            self._add_one(layer, name, make_node(value), place)
        self._merge(layer)

    def add_file(self, tree: Node, file: Place) -> None:
        """Add a file's table."""
        layer = _Layer()
        assert isinstance(tree.value, dict)
        self._add_table(layer, "", tree.value, file)
        self._merge(layer)

    def take_back(self, words: list[Word], earlier: Mapping[str, Setting]) -> None:
        """Give keys the values of earlier layers again."""
        for word in words:
            match = self._keys.find(self._keys.spell(word.name))
            if match.kind != "value":
                self._refuse_unknown(word.name, Node(None), word.place)
            elif match.key in earlier:
                self.settings[match.key] = earlier[match.key]
            else:
                self.settings.pop(match.key, None)

    def add_words(self, words: list[Word]) -> None:
        """Add words of the command line or variables of the environment; of two for one key the last counts."""
        layer = _Layer(may_repeat=True)
        for word in words:
            name = self._keys.spell(word.name)
            node = self._read_word(name, word)
            self._add_one(layer, name, node, word.place)
        self._merge(layer)

    def _read_word(self, name: str, word: Word) -> Node:
        secret = find_secret(name, word.text)
        if secret:
            return Node(word.text)
        match = self._keys.find(name)
        wanted = (
            read_wanted(self._keys.values[match.key])
            if match.kind == "value" and match.key in self._keys.values
            else None
        )
        if wanted and wanted.takes("text") and not wanted.takes("any") and not word.text.startswith(('"', "'")):
            # No shell leaves quotes around a word, so a key that wants text takes it as it is.
            is_null = wanted.takes("null") and word.text in ("", "null", "none", "~")
            return Node(None if is_null else word.text)
        node = read_value(word.text, word.place, self._problems)
        if wanted and wanted.takes("list") and isinstance(node.value, str) and "," in node.value:
            items = [read_value(part.strip(), word.place, self._problems) for part in node.value.split(",")]
            return Node(items)
        return node

    def _add_table(self, layer: _Layer, prefix: str, table: dict[str, Entry], file: Place) -> None:
        for name, entry in table.items():
            self._add_one(layer, f"{prefix}{name}", entry.node, _inside(file, entry))

    def _add_one(self, layer: _Layer, name: str, node: Node, place: Place) -> None:
        match = self._keys.find(name, is_table=isinstance(node.value, dict))
        if self._refuse_secrets(name, node, place):
            self.broken.add(match.key)
            return
        if match.kind in ("section", "group") and isinstance(node.value, dict):
            self._add_table(layer, f"{match.key}.", node.value, place)
        elif match.kind == "section":
            if node.value is not None:
                self._problems.add(_value_place(place, node), "config/not-a-section", key=match.key)
        elif match.kind == "value":
            self._set(layer, match, node, place)
        elif match.kind == "ignored":
            facts: dict[str, object] = {
                "key": name,
                "place": str(place),
                "reason": say(match.key),
                "reason_code": match.key,
                "value": node.value if isinstance(node.value, str | int | float) else None,
            }
            self.warnings.append(("config/ignored", facts))
        elif match.kind == "ambiguous":
            self._refuse_ambiguous(match, node, place)
        else:
            self._refuse_unknown(name, node, place)

    def _set(self, layer: _Layer, match: Match, node: Node, place: Place) -> None:
        if node.has_broken():
            self.broken.add(match.key)
            return
        before = layer.settings.get(match.key)
        if before and not before.is_implied and not layer.may_repeat:
            self._problems.add(place, "config/set-twice", key=match.key, first=str(before.place))
            return
        layer.settings[match.key] = Setting(node, place, alias=match.alias)
        for key, value in self._keys.recipe.implied.get(match.alias or "", {}).items():
            if key not in layer.settings or layer.settings[key].is_implied:
                layer.settings[key] = Setting(make_node(value), place, is_implied=True)

    def _merge(self, layer: _Layer) -> None:
        self.settings.update(layer.settings)

    def _refuse_secrets(self, name: str, node: Node, place: Place) -> bool:
        found = False
        if isinstance(node.value, dict):
            for inner, entry in node.value.items():
                at = _inside(place, entry)
                # A table's own keys are looked up one by one later; what no table holds is looked at here.
                if self._keys.find(name, is_table=True).kind not in ("section", "group"):
                    found |= self._refuse_secrets(f"{name}.{inner}", entry.node, at)
        elif isinstance(node.value, list):
            for item in node.value:
                found |= self._refuse_secrets(name, item, place)
        else:
            secret = find_secret(name, node.value)
            if secret:
                facts = {"key": name[:80], "kind": Phrase(secret.kind), "variable": secret.variable}
                self._problems.add(_value_place(place, node), secret.code, **facts)
                found = True
        return found

    def _refuse_ambiguous(self, match: Match, node: Node, place: Place) -> None:
        typed = _typed(place, match.others[0], node, match.key)
        self._problems.add(place, "config/ambiguous-key", key=match.key, others=", ".join(match.others), typed=typed)

    def _refuse_unknown(self, name: str, node: Node, place: Place) -> None:
        if not self._problems.has_room():
            self._problems.add(place, "config/unknown-key", key=name)
            return
        nearest = self._keys.suggest(name)
        shown = name[:80]
        if not nearest:
            self._problems.add(place, "config/unknown-key", key=shown)
            return
        typed = _typed(place, nearest[0], node, name)
        self._problems.add(place, "config/unknown-key-near", key=shown, nearest=nearest[0], typed=typed)


class _Layer:
    """What one layer sets."""

    def __init__(self, may_repeat: bool = False) -> None:
        self.settings: dict[str, Setting] = {}
        self.may_repeat = may_repeat


def _inside(place: Place, entry: Entry) -> Place:
    """Return the place of a table's entry: its own line in a file; a word or a variable stays the place it is."""
    return place if place.form in ("words", "variable") else replace(place, line=entry.line, column=entry.column)


def _value_place(place: Place, node: Node) -> Place:
    return replace(place, line=node.line, column=node.column) if node.line else place


def _typed(place: Place, key: str, node: Node, name: str) -> str:
    """Return the setting as it should be typed: the leaf where its table is around it, the dotted key elsewhere."""
    is_inside = key.rpartition(".")[0] == name.rpartition(".")[0]
    if isinstance(node.value, list | dict) or name_of_secret(name):
        return key.rpartition(".")[2] if is_inside else key
    value = node.value if node.raw is None else node.raw
    if is_inside or place.form in ("words", "variable"):
        return write_setting(place.form, key, value)
    if place.form == "py":
        section, _, leaf = key.rpartition(".")
        return f"{section} = {{{leaf!r}: {value!r}}}" if section else write_setting(place.form, key, value)
    text = write_setting(place.form, key.rpartition(".")[2], value)
    leaf = key.rpartition(".")[2]
    return text.replace(leaf, key, 1)
