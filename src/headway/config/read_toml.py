"""TOML: tomllib decides what the file says, a scan beside it finds where each key and value is.

The scan runs first and trusts nothing: it stops at depths and counts that would cost tomllib seconds, and leaves every
other fault to tomllib, whose word on syntax is the last.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any, NoReturn

from headway.config.problems import Place, Problems
from headway.config.tree import Entry, Lines, Node, TreeBuilder

Path = tuple[str | int, ...]
Spot = tuple[int, int]

_BLANK = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*?"""(?:"{0,2})'
    r"|'''(?:[^']|'{1,2}(?!'))*?'''(?:'{0,2})"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_PLAIN = re.compile(r"[^,\]}#\r\n]+")
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_LONG_NUMBER = re.compile(r"[-+]?[0-9a-fA-Fxob_]{400,}\s*")


class _FaultError(Exception):
    """The scan met something that is not TOML; tomllib will say what."""


@dataclass(frozen=True, slots=True)
class _Twin:
    """A key written a second time."""

    key: str
    spot: Spot
    first: Spot


def read_toml(text: str, builder: TreeBuilder) -> Node:
    """Return the document's table."""
    scan = _Scan(text, builder)
    try:
        scan.run()
    except _FaultError:
        pass  # tomllib, below, names the fault
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        _stop_with_fault(error, text, scan, builder)
    except (RecursionError, ValueError) as error:  # ValueError: a number of thousands of digits
        builder.problems.stop(builder.place(1, 1), "config/toml-syntax", why=str(error).partition(";")[0])
    return _Tree(scan.spots, builder).table(data, ())


def end_of_value(text: str, start: int) -> int:
    """Return the offset behind the value that begins at an offset of a text that has been read before."""
    return _Scan(text, TreeBuilder(Place(0, "toml", form="toml"), Problems())).end_of_value(start)


def _stop_with_fault(error: tomllib.TOMLDecodeError, text: str, scan: _Scan, builder: TreeBuilder) -> NoReturn:
    words = str(error)
    found = _AT.search(words)
    end = Lines(text).spot(len(text))
    spot = (int(found[1]), int(found[2])) if found and found[1] else end
    why = words[: found.start()] if found else words
    is_twin = why.startswith(("Cannot overwrite", "Cannot declare", "Cannot mutate", "Cannot redefine", "Duplicate"))
    before = [twin for twin in scan.twins if twin.spot <= spot]
    if before and is_twin:
        twin = before[-1]
        builder.problems.stop(
            builder.place(*twin.spot), "config/duplicate-key", key=twin.key, line=twin.first[0], column=twin.first[1]
        )
    builder.problems.stop(builder.place(*spot), "config/toml-syntax", why=why[:1].lower() + why[1:])


class _Scan:
    """Walks the text once and notes where keys and values begin."""

    def __init__(self, text: str, builder: TreeBuilder) -> None:
        self.spots: dict[Path, tuple[Spot, Spot]] = {}
        """Path to the places of its key and its value."""
        self.twins: list[_Twin] = []
        """Keys met again; some are legal (`[a]` after `[a.b]`), tomllib knows which."""
        self._text = text
        self._lines = Lines(text)
        self._builder = builder
        self._at = 0
        self._num_parts = 0
        self._lengths: dict[Path, int] = {}
        """Tables so far in each array of tables."""

    def run(self) -> None:
        """Scan the whole text."""
        table: Path = ()
        while self._skip(_GAP) < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table, 0)
            self._skip(_BLANK)
            if self._at < len(self._text) and self._text[self._at] not in "#\r\n":
                raise _FaultError

    def end_of_value(self, start: int) -> int:
        """Return the offset behind the value at an offset, without the blanks that follow it."""
        self._at = start
        self._value((), 0)
        return start + len(self._text[start : self._at].rstrip(" \t"))

    def _header(self) -> Path:
        is_array = self._text.startswith("[[", self._at)
        self._at += 2 if is_array else 1
        parts = self._key()
        self._take("]]" if is_array else "]")
        table: Path = ()
        for number, (name, spot) in enumerate(parts):
            table = (*table, name)
            if number + 1 < len(parts):
                self.spots.setdefault(table, (spot, spot))
                table = (*table, self._lengths[table] - 1) if table in self._lengths else table
        spot = parts[-1][1]
        if not is_array:
            self._note(table, spot, spot)
            return table
        length = self._lengths.get(table, 0)
        self._lengths[table] = length + 1
        self.spots.setdefault(table, (spot, spot))
        self.spots[(*table, length)] = (spot, spot)
        return (*table, length)

    def _pair(self, table: Path, depth: int) -> None:
        parts = self._key()
        self._take("=")
        self._skip(_BLANK)
        value = self._spot()
        for name, spot in parts[:-1]:
            table = (*table, name)
            self.spots.setdefault(table, (spot, spot))
        name, spot = parts[-1]
        self._note((*table, name), spot, value)
        self._value((*table, name), depth + 1)

    def _note(self, path: Path, key: Spot, value: Spot) -> None:
        if path in self.spots:
            self.twins.append(_Twin(".".join(str(part) for part in path)[:80], key, self.spots[path][0]))
        self.spots[path] = (key, value)

    def _key(self) -> list[tuple[str, Spot]]:
        parts: list[tuple[str, Spot]] = []
        while True:
            self._skip(_BLANK)
            spot = self._spot()
            parts.append((self._key_part(), spot))
            self._builder.check_depth(spot, len(parts))
            self._count(spot)
            self._skip(_BLANK)
            if not self._text.startswith(".", self._at):
                return parts
            self._at += 1

    def _key_part(self) -> str:
        bare = _BARE.match(self._text, self._at)
        if bare:
            self._at = bare.end()
            return bare.group()
        quoted = _STRING.match(self._text, self._at)
        if not quoted or quoted.group().startswith(('"""', "'''")):
            raise _FaultError
        self._at = quoted.end()
        try:
            return str(tomllib.loads(f"key = {quoted.group()}")["key"])
        except tomllib.TOMLDecodeError as error:
            raise _FaultError from error

    def _value(self, path: Path, depth: int) -> None:
        spot = self._spot()
        self._builder.check_depth(spot, depth)
        self._count(spot)
        if self._text.startswith("[", self._at):
            self._array(path, depth)
        elif self._text.startswith("{", self._at):
            self._inline_table(path, depth)
        else:
            found = _STRING.match(self._text, self._at) or _PLAIN.match(self._text, self._at)
            if not found:
                raise _FaultError
            if _LONG_NUMBER.fullmatch(found.group()):
                self._builder.problems.stop(self._builder.place(*spot), "config/number-too-large")
            self._at = found.end()

    def _array(self, path: Path, depth: int) -> None:
        self._at += 1
        index = 0
        while self._text[self._skip(_GAP) : self._at + 1] != "]":
            spot = self._spot()
            self.spots[(*path, index)] = (spot, spot)
            self._value((*path, index), depth + 1)
            index += 1
            if self._text[self._skip(_GAP) : self._at + 1] == ",":
                self._at += 1
            elif self._text[self._at : self._at + 1] != "]":
                raise _FaultError
        self._at += 1

    def _inline_table(self, path: Path, depth: int) -> None:
        self._at += 1
        while self._text[self._skip(_BLANK) : self._at + 1] != "}":
            self._pair(path, depth)
            if self._text[self._skip(_BLANK) : self._at + 1] == ",":
                self._at += 1
            elif self._text[self._at : self._at + 1] != "}":
                raise _FaultError
        self._at += 1

    def _take(self, sign: str) -> None:
        self._skip(_BLANK)
        if not self._text.startswith(sign, self._at):
            raise _FaultError
        self._at += len(sign)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at

    def _spot(self) -> Spot:
        return self._lines.spot(self._at)

    def _count(self, spot: Spot) -> None:
        self._builder.count(spot)


class _Tree:
    """Puts what tomllib read and where the scan found it together."""

    def __init__(self, spots: dict[Path, tuple[Spot, Spot]], builder: TreeBuilder) -> None:
        self._spots = spots
        self._builder = builder

    def table(self, data: dict[str, Any], path: Path) -> Node:
        entries: dict[str, Entry] = {}
        for key, value in data.items():
            inner = (*path, key)
            entries[key] = Entry(*self._spots[inner][0], self._node(value, inner))
        return Node(entries, *(self._spots[path][1] if path else (1, 1)))

    def _node(self, value: Any, path: Path) -> Node:
        """Any: what tomllib returns."""
        spot = self._spots[path][1]
        if isinstance(value, dict):
            return self.table(value, path)
        if isinstance(value, list):
            return Node([self._node(item, (*path, index)) for index, item in enumerate(value)], *spot)
        if isinstance(value, bool | int | float | str):
            return self._builder.scalar(value, spot)
        return self._builder.refuse(spot, "config/toml-date")
