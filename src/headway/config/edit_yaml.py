"""YAML: a value replaced or added at the place its events tell. A round trip would respell what nobody asked about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.events import AliasEvent, MappingEndEvent, MappingStartEvent, ScalarEvent, SequenceEndEvent
from ruamel.yaml.events import SequenceStartEvent as ListStartEvent

from headway.config.edit_spot import Spot, Table, add_member, line_break
from headway.config.spelling import write_yaml_value

_COMMENT = re.compile(r"(?:(?<=\s)|^)#[^\r\n]*")
_ANCHOR = re.compile(r"(?:[&!]\S*\s+)+")
_STEP = 2


@dataclass(slots=True)
class _Part:
    """A key's value, as events: the first, and for tables the last before the end and the end itself."""

    first: Any
    last: Any
    """Any: ruamel is not typed."""
    end: Any


def edit_yaml(text: str, spot: Spot, value: bool | int | float | str) -> str:
    """Return the text with one value changed or added."""
    events = list(YAML(typ="safe", pure=True).parse(text))
    found, missing = spot.descend()
    root = next((event for event in events if isinstance(event, MappingStartEvent)), None)
    if root is None:
        newline = line_break(text)
        lead = text if not text or text.endswith(("\n", "\r")) else text + newline
        return lead + _block(spot.words, value, "", newline, _STEP) + newline
    part = _part_at(events, events.index(root))
    if found:
        key = next(n for n, event in enumerate(events) if _is_at(event, found[-1].line, found[-1].column))
        part = _part_at(events, key + 1)
    if isinstance(part.first, MappingStartEvent) and missing:
        return _add(text, events, part, missing, value)
    if isinstance(part.first, MappingStartEvent | ListStartEvent) or (missing and part.first.value):
        raise spot.refuse()
    return _replace(text, part.first, _flow(missing, value))


def _is_at(event: Any, line: int, column: int) -> bool:
    mark = event.start_mark
    return isinstance(event, ScalarEvent) and (mark.line + 1, mark.column + 1) == (line, column)


def _part_at(events: list[Any], number: int) -> _Part:
    first, depth = events[number], 0
    for place in range(number, len(events)):
        depth += isinstance(events[place], MappingStartEvent | ListStartEvent)
        depth -= isinstance(events[place], MappingEndEvent | SequenceEndEvent)
        if depth == 0:
            return _Part(first, _last_solid(events[number:place]) or first, events[place])
    raise AssertionError("every collection ends")


def _last_solid(events: list[Any]) -> Any:
    """Return the last event that has letters of its own: the end of a block is where the next thing begins."""
    is_flow: list[bool] = []
    last = None
    for event in events:
        if isinstance(event, MappingStartEvent | ListStartEvent):
            is_flow.append(bool(event.flow_style))
        elif isinstance(event, ScalarEvent | AliasEvent) or (is_flow and is_flow.pop()):
            last = event
    return last


def _replace(text: str, event: Any, written: str) -> str:
    start, end = event.start_mark.index, event.end_mark.index
    if isinstance(event, ScalarEvent):
        found = _ANCHOR.match(text[start:end])
        start += found.end() if found else 0
        if event.style == "'" and not written.startswith(('"', "{")):
            written = f"'{written}'" if _is_word(written) else written
        elif event.style == '"' and _is_word(written):
            written = f'"{written}"'
    blank = " " if start == end and not text[start - 1 : start].isspace() else ""
    return text[:start] + blank + written + text[end:]


def _is_word(written: str) -> bool:
    """Say whether this is text that is without quotes; a number in quotes would be text."""
    return written not in ("true", "false", "null") and re.fullmatch(r"[A-Za-z_][\w./-]*", written) is not None


def _add(text: str, events: list[Any], part: _Part, words: tuple[str, ...], value: bool | int | float | str) -> str:
    newline = line_break(text)
    start, end = part.first.start_mark.index, part.end.end_mark.index
    if part.first.flow_style:
        keys = [event for event in events if start < event.start_mark.index < end and event is not part.end]
        table = Table(
            start=text.index("{", start),
            end=end - 1,
            # The first member tells as well as the last whether members have lines of their own.
            last_start=keys[0].start_mark.index if keys else None,
            last_end=part.last.end_mark.index if keys else text.index("{", start) + 1,
        )
        member = f"{words[0]}: {_flow(words[1:], value)}"
        return add_member(text, table, member, comment=_COMMENT, line_comment=("#",))
    columns = {event.start_mark.column for event in events if isinstance(event, MappingStartEvent)} - {0}
    indent = " " * int(part.first.start_mark.column)
    member = indent + _block(words, value, indent, newline, min(columns, default=_STEP))
    here = int(part.last.end_mark.index)
    if part.last.end_mark.column == 0 and here > 0:  # text in a block ends where the next line begins
        return text[:here] + ("" if text[:here].endswith(("\n", "\r")) else newline) + member + newline + text[here:]
    found = re.compile(r"[^\r\n]*").match(text, here)
    here = found.end() if found else len(text)
    return text[:here] + newline + member + text[here:]


def _block(words: tuple[str, ...], value: bool | int | float | str, indent: str, newline: str, step: int) -> str:
    if len(words) == 1:
        return f"{words[0]}: {write_yaml_value(value)}"
    deeper = indent + " " * step
    return f"{words[0]}:{newline}{deeper}{_block(words[1:], value, deeper, newline, step)}"


def _flow(words: tuple[str, ...], value: bool | int | float | str) -> str:
    text = write_yaml_value(value)
    for word in reversed(words):
        text = f"{{{word}: {text}}}"
    return text
