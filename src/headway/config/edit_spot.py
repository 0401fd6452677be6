"""Where in a file a value is or should be, and how a member is added to a table in brackets."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headway.config.tree import Entry, Lines, Node
from headway.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Spot:
    """A name of a file's tree, there or not."""

    tree: Node
    words: tuple[str, ...]
    key: str
    """The dotted key, for messages."""

    def descend(self) -> tuple[list[Entry], tuple[str, ...]]:
        """Return the entries that are there, outermost first, and the names that are not."""
        found: list[Entry] = []
        node = self.tree
        for number, word in enumerate(self.words):
            if not isinstance(node.value, dict) or word not in node.value:
                return found, self.words[number:]
            found.append(node.value[word])
            node = found[-1].node
        return found, ()

    def refuse(self) -> ConfigError:
        """Return the error for a value that cannot be changed alone."""
        return ConfigError("config/edit-not-plain", key=self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table in brackets, as text."""

    start: int
    """Offset of the opening bracket."""
    end: int
    """Offset of the closing one."""
    last_start: int | None
    """Offset of the last member's name; none: the table is empty."""
    last_end: int
    """Offset behind the last member's value, or behind the opening bracket."""


def last_entry(node: Node) -> Entry | None:
    """Return the entry that is last in the text of a table."""
    assert isinstance(node.value, dict)
    return max(node.value.values(), key=lambda entry: (entry.line, entry.column), default=None)


def line_break(text: str) -> str:
    """Return how this file ends its lines."""
    found = re.search(r"\r\n|\n|\r", text)
    return found.group() if found else "\n"


def indent_of(text: str, offset: int) -> str | None:
    """Return the blanks before an offset, if nothing else is before it on its line."""
    start = offset - Lines(text[:offset]).spot(offset)[1] + 1
    before = text[start:offset]
    return before if not before.strip(" \t") else None


def add_member(text: str, table: Table, member: str, *, comment: re.Pattern[str], line_comment: tuple[str, ...]) -> str:
    """Return the text with a member added behind the last one: on a line of its own where that one has its own.

    Args:
        comment: matches one comment of the format.
        line_comment: how comments begin that end with their line.
    """
    gap = text[table.last_end : table.end]
    comments = list(comment.finditer(gap))
    has_comma = "," in comment.sub("", gap)
    # A comment's own last blanks belong to it.
    length = max(len(gap.rstrip()), comments[-1].end() if comments else 0)
    here = table.last_end + length
    hangs = bool(comments) and comments[-1].end() == length and comments[-1].group().startswith(line_comment)
    indent = indent_of(text, table.last_start) if table.last_start is not None else None
    if table.last_start is not None and "\n" not in text[table.start : table.last_start].replace("\r", "\n"):
        indent = None  # all on the line of the bracket
    if indent is None and hangs:
        indent = " " * 2
    lead = line_break(text) + indent if indent is not None else " " if table.last_start is not None else ""
    tail = "," if has_comma else ""
    comma = "," if table.last_start is not None and not has_comma else ""
    return text[: table.last_end] + comma + text[table.last_end : here] + lead + member + tail + text[here:]
