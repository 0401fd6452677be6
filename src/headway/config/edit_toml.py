"""TOML: a value replaced in place, or a line added to its table."""

from __future__ import annotations

import json
import re
import tomllib

from headway.config.edit_spot import Spot, Table, add_member, last_entry, line_break
from headway.config.read_toml import end_of_value
from headway.config.spelling import write_value
from headway.config.tree import Entry, Lines, Node

_COMMENT = re.compile(r"#[^\r\n]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def edit_toml(text: str, spot: Spot, value: bool | int | float | str) -> str:
    """Return the text with one value changed or added."""
    found, missing = spot.descend()
    lines = Lines(text)
    if not missing:
        node = found[-1].node
        if isinstance(node.value, list | dict):
            raise spot.refuse()
        start = lines.offset(node.line, node.column)
        written = write_value("toml", value)
        if isinstance(value, str) and text.startswith("'", start) and value.isprintable() and "'" not in value:
            written = f"'{value}'"  # quotes as they were
        return text[:start] + written + text[end_of_value(text, start) :]
    table = found[-1].node if found else spot.tree
    if not isinstance(table.value, dict):
        raise spot.refuse()
    pair = f"{_dotted(missing)} = {write_value('toml', value)}"
    if found:
        begin = lines.offset(found[-1].line, 1)
        names = spot.words[: len(found)]
        if _is_header(text, found[-1], lines) and _depth(text, begin) > len(names):
            # Only `[a.b]` is written: a line behind it would be `a.b.z`, so `[a]` gets a header of its own above it.
            newline = line_break(text)
            return f"{text[:begin]}[{_dotted(names)}]{newline}{pair}{newline}{newline}{text[begin:]}"
        return _add_to_table(text, found[-1], pair, lines)
    if len(missing) == 1:
        return _add_at_top(text, spot.tree, pair, lines)
    header = f"[{_dotted(missing[:-1])}]"
    newline = line_break(text)
    lead = text if not text or text.endswith(("\n", "\r")) else text + newline
    gap = newline if lead.strip() else ""
    return f"{lead}{gap}{header}{newline}{_dotted(missing[-1:])} = {write_value('toml', value)}{newline}"


def _add_to_table(text: str, entry: Entry, pair: str, lines: Lines) -> str:
    node = entry.node
    start = lines.offset(node.line, node.column)
    if text.startswith("{", start):
        last = last_entry(node)
        place = Table(
            start=start,
            end=end_of_value(text, start) - 1,
            last_start=lines.offset(last.line, last.column) if last else None,
            last_end=_end(text, last, lines) if last else start + 1,
        )
        return add_member(text, place, pair, comment=_COMMENT, line_comment=())
    members = _own_pairs(text, node, lines)
    if _is_header(text, entry, lines):
        if not members:
            return _add_line(text, start, pair)
        return _add_line(text, _end(text, members[-1], lines), pair, like=lines.offset(members[-1].line, 1))
    # Written as `table.name = …`: one more of these behind the last.
    if not members:
        return text  # only deeper tables; what is read back tells that nothing was added
    last = members[-1]
    begin = lines.offset(last.line, 1)
    prefix = text[begin : lines.offset(last.line, last.column)].lstrip(" \t")
    return _add_line(text, _end(text, last, lines), prefix + pair, like=begin)


def _add_at_top(text: str, tree: Node, pair: str, lines: Lines) -> str:
    """Add a key that belongs to no table: behind the last such key, or before the first table."""
    members = _own_pairs(text, tree, lines)
    if members:
        return _add_line(text, _end(text, members[-1], lines), pair, like=lines.offset(members[-1].line, 1))
    assert isinstance(tree.value, dict)
    newline = line_break(text)
    first = min((entry.line for entry in tree.value.values()), default=None)
    if first is None:
        lead = text if not text or text.endswith(("\n", "\r")) else text + newline
        return f"{lead}{pair}{newline}"
    begin = lines.offset(first, 1)
    return f"{text[:begin]}{pair}{newline}{newline}{text[begin:]}"


def _own_pairs(text: str, table: Node, lines: Lines) -> list[Entry]:
    """Return the `name = value` lines of a table, in the order of the text."""
    assert isinstance(table.value, dict)
    found = [
        entry
        for entry in table.value.values()
        if not isinstance(entry.node.value, dict)
        or text.startswith("{", lines.offset(entry.node.line, entry.node.column))
    ]
    return sorted(
        (entry for entry in found if not _is_header(text, entry, lines)), key=lambda entry: (entry.line, entry.column)
    )


def _is_header(text: str, entry: Entry, lines: Lines) -> bool:
    return text[lines.offset(entry.line, 1) :].lstrip(" \t").startswith("[")


def _depth(text: str, begin: int) -> int:
    """Return how many names the header of a table has that begins a line."""
    line = re.compile(r"[^\r\n]*").match(text, begin)
    table: object = tomllib.loads(line.group()) if line else {}
    depth = 0
    while table:
        if isinstance(table, dict):
            depth += 1
            table = next(iter(table.values()))
        else:
            table = table[0] if isinstance(table, list) else None
    return depth


def _end(text: str, entry: Entry, lines: Lines) -> int:
    return end_of_value(text, lines.offset(entry.node.line, entry.node.column))


def _add_line(text: str, offset: int, pair: str, *, like: int | None = None) -> str:
    """Add a line behind the one an offset is on, indented like another."""
    found = re.compile(r"[^\r\n]*").match(text, offset)
    end = found.end() if found else len(text)
    blanks = re.compile(r"[ \t]*").match(text, like) if like is not None else None
    indent = blanks.group() if blanks else ""
    return f"{text[:end]}{line_break(text)}{indent}{pair}{text[end:]}"


def _dotted(words: tuple[str, ...]) -> str:
    return ".".join(word if _BARE.fullmatch(word) else json.dumps(word, ensure_ascii=False) for word in words)
