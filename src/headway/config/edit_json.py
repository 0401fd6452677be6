"""JSON with its comments: a value replaced or added in place."""

from __future__ import annotations

import json
import re

from headway.config.edit_spot import Spot, Table, add_member, indent_of, last_entry, line_break
from headway.config.read_json import end_of_value
from headway.config.spelling import write_value
from headway.config.tree import Lines, Node

_COMMENT = re.compile(r"(?://|#)[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STEP = "  "


def edit_json(text: str, spot: Spot, value: bool | int | float | str) -> str:
    """Return the text with one value changed or added."""
    found, missing = spot.descend()
    lines = Lines(text)
    if not missing or (found and found[-1].node.value is None):
        node = found[-1].node
        if isinstance(node.value, list | dict):
            raise spot.refuse()
        start = lines.offset(node.line, node.column)
        return text[:start] + _nested(missing, value) + text[end_of_value(text, start) :]
    table = found[-1].node if found else spot.tree
    if not isinstance(table.value, dict):
        raise spot.refuse()
    newline = line_break(text)
    if table.line == 0:  # a file that says nothing
        lead = text if not text or text.endswith(("\n", "\r")) else text + newline
        member = _member(missing, value, newline + _STEP, _STEP)
        return f"{lead}{{{newline}{_STEP}{member}{newline}}}{newline}"
    place = _look(text, table, lines)
    indent = indent_of(text, place.last_start) if place.last_start is not None else None
    if place.last_start is None and not found and place.end == place.start + 1:
        member = _member(missing, value, newline + _STEP, _STEP)
        return text[: place.end] + newline + _STEP + member + newline + text[place.end :]
    is_wide = indent is not None and table.line != lines.spot(place.last_start or 0)[0]
    step = (indent or _STEP) if not found else _STEP
    member = _member(missing, value, newline + indent if is_wide and indent is not None else "", step)
    return add_member(text, place, member, comment=_COMMENT, line_comment=("//", "#"))


def _look(text: str, table: Node, lines: Lines) -> Table:
    start = lines.offset(table.line, table.column)
    last = last_entry(table)
    return Table(
        start=start,
        end=end_of_value(text, start) - 1,
        last_start=lines.offset(last.line, last.column) if last else None,
        last_end=end_of_value(text, lines.offset(last.node.line, last.node.column)) if last else start + 1,
    )


def _member(words: tuple[str, ...], value: bool | int | float | str, begin: str, step: str) -> str:
    """Return `"name": value`; a table in between on lines of its own where its surroundings are."""
    name = json.dumps(words[0], ensure_ascii=False)
    if len(words) == 1 or not begin:
        return f"{name}: {_nested(words[1:], value)}"
    return f"{name}: {{{begin}{step}{_member(words[1:], value, begin + step, step)}{begin}}}"


def _nested(words: tuple[str, ...], value: bool | int | float | str) -> str:
    text = write_value("json", value)
    for word in reversed(words):
        text = f"{{{json.dumps(word, ensure_ascii=False)}: {text}}}"
    return text
