"""JSON, with //, # and /* */ comments and trailing commas, and with the place of every key and value."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from headway.config.problems import Place, Problems
from headway.config.scalar import read_whole
from headway.config.tree import Entry, Lines, Node, TreeBuilder

_SPACE = re.compile(r"(?:[ \t\r\n]+|(?://|#)[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<rest>(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?![\w.])")
_WORD = re.compile(r"[-+]?[\w.$+-]+")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity", "+Infinity"})


def read_json(text: str, builder: TreeBuilder) -> Node | None:
    """Return the document, or None when the file says nothing."""
    reader = _Reader(text, builder)
    reader.skip()
    if reader.at == len(text):
        return None
    node = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        reader.stop("config/json-after-end")
    return node


def end_of_value(text: str, start: int) -> int:
    """Return the offset behind the value that begins at an offset of a text that has been read before."""
    reader = _Reader(text, TreeBuilder(Place(0, "json", form="json"), Problems()))
    reader.at = start
    reader.value(0)
    return reader.at


class _Reader:
    """A cursor over the text. Depth is limited, so plain recursion is safe."""

    def __init__(self, text: str, builder: TreeBuilder) -> None:
        self.at = 0
        self._text = text
        self._lines = Lines(text)
        self._builder = builder
        self._has_comment = False

    def skip(self) -> None:
        """Go past space and comments."""
        found = _SPACE.match(self._text, self.at)
        if found and not self._has_comment and found.group().strip():
            self._has_comment = True
            comment = self._at_first_letter(found.group())
            self._builder.problems.note(self._builder.place(*self._lines.spot(comment)), "config/json-comment")
        self.at = found.end() if found else self.at
        if self._text.startswith("/*", self.at):
            self.stop("config/json-open-comment")

    def _at_first_letter(self, space: str) -> int:
        return self.at + len(space) - len(space.lstrip())

    def stop(self, code: str, **facts: object) -> NoReturn:
        """Stop with a problem at the cursor."""
        self._builder.problems.stop(self._builder.place(*self._spot()), code, **facts)

    def value(self, depth: int) -> Node:
        """Read any value."""
        letter, spot = self._peek(), self._spot()
        if letter in "[{":
            self._builder.check_depth(spot, depth + 1)
            self._builder.count(spot)
            return self._table(depth + 1) if letter == "{" else self._list(depth + 1)
        if letter == '"':
            return self._builder.scalar(self._string(), spot)
        found = _NUMBER.match(self._text, self.at)
        if found:
            self.at = found.end()
            words = found.group()
            return self._builder.scalar(float(words) if found["rest"] else read_whole(words, 10), spot)
        return self._word(spot)

    def _word(self, spot: tuple[int, int]) -> Node:
        found = _WORD.match(self._text, self.at)
        word = found.group() if found else ""
        if not found or (word not in _WORDS and word not in _NOT_FINITE):
            if self._peek() == "'":
                self.stop("config/json-single-quote")
            if word:
                self.stop("config/json-bare-word", word=word[:60])
            self.stop("config/json-no-value", got=self._got())
        self.at = found.end()
        if word in _NOT_FINITE:
            return self._builder.refuse(spot, "config/not-a-number")
        return self._builder.scalar(_WORDS[word], spot)

    def _list(self, depth: int) -> Node:
        spot, items = self._spot(), []
        self.at += 1
        while not self._ends("]"):
            items.append(self.value(depth))
            self._comma("]")
        return Node(items, *spot)

    def _table(self, depth: int) -> Node:
        spot, table = self._spot(), dict[str, Entry]()
        self.at += 1
        while not self._ends("}"):
            key_spot = self._spot()
            key = self._key()
            self.skip()
            if self._peek() != ":":
                self.stop("config/json-no-colon", key=key[:60], got=self._got())
            self.at += 1
            self.skip()
            self._builder.put(table, key, key_spot, self.value(depth))
            self._comma("}")
        return Node(table, *spot)

    def _key(self) -> str:
        if self._peek() == '"':
            return self._string()
        if self._peek() == "'":
            self.stop("config/json-single-quote")
        found = _WORD.match(self._text, self.at)
        if found:
            self.stop("config/json-bare-key", word=found.group()[:60])
        return self.stop("config/json-no-key", got=self._got())

    def _string(self) -> str:
        found = _STRING.match(self._text, self.at)
        if not found:
            self.stop("config/json-open-quote")
        try:
            text: str = json.loads(found.group())
        except ValueError:
            self.stop("config/json-escape")
        self.at = found.end()
        return text

    def _comma(self, closing: str) -> None:
        self.skip()
        if self._peek() == ",":
            self.at += 1
            self.skip()
        elif self._peek() != closing:
            self.stop("config/json-no-comma", closing=closing, got=self._got())

    def _ends(self, closing: str) -> bool:
        self.skip()
        if self._peek() != closing:
            return False
        self.at += 1
        return True

    def _peek(self) -> str:
        # At the end of the text: a space, which begins nothing.
        return self._text[self.at : self.at + 1] or " "

    def _got(self) -> str:
        return self._text[self.at : self.at + 1] or "end of file"

    def _spot(self) -> tuple[int, int]:
        return self._lines.spot(self.at)
