"""A config file as read: values that know their line and column, and the limits that keep a hostile file small."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, replace
from typing import Any

from headway.config.problems import Place, Problems

MAX_BYTES = 64 << 10
"""Largest file read. Measured: the slowest 64 KiB (YAML's tags, Python's `1;1;…`) take a quarter of a second."""
MAX_DEPTH = 48
"""Deepest nesting; real configs have five."""
MAX_VALUES = 5_000
"""Most keys and values, aliases counted as often as they are used."""
_WORD = 1 << 63


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it begins."""

    value: bool | int | float | str | list[Node] | dict[str, Entry] | None
    line: int = 0
    column: int = 0
    is_broken: bool = False
    """A problem about it has been noted already; it is not looked at again."""
    raw: str | None = None
    """The words as typed, where a format has no quotes (command line, environment)."""

    def plain(self) -> Any:
        """Return the value without places; Any: it is what JSON can hold."""
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        if isinstance(self.value, dict):
            return {name: entry.node.plain() for name, entry in self.value.items()}
        return self.value

    def has_broken(self) -> bool:
        """Say whether a problem has been noted about the value or a part of it."""
        if isinstance(self.value, list):
            return any(item.has_broken() for item in self.value)
        if isinstance(self.value, dict):
            return any(entry.node.has_broken() for entry in self.value.values())
        return self.is_broken


@dataclass(frozen=True, slots=True)
class Entry:
    """A key's place and its value."""

    line: int
    column: int
    node: Node


def make_node(value: object) -> Node:
    """Return a plain value (of a preset, of the command line) as a node without a place."""
    if isinstance(value, dict):
        return Node({str(name): Entry(0, 0, make_node(item)) for name, item in value.items()})
    if isinstance(value, list | tuple):
        return Node([make_node(item) for item in value])
    assert value is None or isinstance(value, bool | int | float | str), f"a preset holds a {type(value).__name__}"
    return Node(value)


class Lines:
    """Turns an offset into line and column, both from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in re.finditer(r"\r\n|\n|\r", text))]

    def spot(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset."""
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column."""
        return self._starts[line - 1] + column - 1


class TreeBuilder:
    """Makes nodes for a reader, and notes what no format may bring: duplicates, endless numbers, too much."""

    def __init__(self, origin: Place, problems: Problems) -> None:
        self._origin = origin
        self._num_values = 0
        self.problems = problems

    def place(self, line: int, column: int) -> Place:
        """Return a place in this file; words of a command line have no lines."""
        return (
            self._origin
            if self._origin.form in ("words", "variable")
            else replace(self._origin, line=line, column=column)
        )

    def add(self, spot: tuple[int, int], code: str, **facts: object) -> None:
        """Note a problem and continue."""
        self.problems.add(self.place(*spot), code, **facts)

    def refuse(self, spot: tuple[int, int], code: str, **facts: object) -> Node:
        """Note a problem about a value and return a stand-in for it."""
        self.add(spot, code, **facts)
        return Node(None, *spot, is_broken=True)

    def count(self, spot: tuple[int, int], num: int = 1) -> None:
        """Count keys and values; stop at the limit."""
        self._num_values += num
        if self._num_values > MAX_VALUES:
            self.problems.stop(self.place(*spot), "config/too-many-values", limit=MAX_VALUES)

    def check_depth(self, spot: tuple[int, int], depth: int) -> None:
        """Stop where nesting is deeper than any config's."""
        if depth > MAX_DEPTH:
            self.problems.stop(self.place(*spot), "config/too-deep", limit=MAX_DEPTH)

    def scalar(self, value: bool | int | float | str | None, spot: tuple[int, int]) -> Node:
        """Return a single value; numbers must be finite and fit 64 bits."""
        self.count(spot)
        if isinstance(value, float) and value != value:
            return self.refuse(spot, "config/not-a-number")
        if isinstance(value, int | float) and not -_WORD <= value < _WORD and not _is_finite_float(value):
            return self.refuse(spot, "config/number-too-large")
        if isinstance(value, str) and any(0xD800 <= ord(letter) <= 0xDFFF for letter in value):
            return self.refuse(spot, "config/half-character")
        return Node(value, *spot)

    def put(self, table: dict[str, Entry], key: str, spot: tuple[int, int], node: Node) -> None:
        """Put a key into a table; a key that is there already is a problem, not a replacement."""
        self.count(spot)
        if key in table:
            first = table[key]
            self.add(spot, "config/duplicate-key", key=key, line=first.line, column=first.column)
            return
        table[key] = Entry(*spot, node)


def _is_finite_float(value: float) -> bool:
    return isinstance(value, float) and abs(value) != float("inf")
