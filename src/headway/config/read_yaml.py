"""YAML under the rules of 1.2, built from ruamel's events without recursion; scalars are read by `scalar`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from headway.config.scalar import read_scalar
from headway.config.tree import MAX_DEPTH, Entry, Lines, Node, TreeBuilder

_MANY_BRACKETS = re.compile(r"(?:[\[{][ \t\r\n]*){100}")
"""ruamel looks ahead over a run of these in quadratic time, before the depth of its events can be seen."""
_ESCAPE = re.compile(r"\\U(?!0010|000)[0-9a-fA-F]{8}")
_TEXT_TAGS = frozenset({"!", "tag:yaml.org,2002:str"})
_CODES = (
    ("found character '\\t'", "config/yaml-tab"),
    ("mapping values are not allowed", "config/yaml-colon"),
    ("could not find expected ':'", "config/yaml-no-colon"),
    ("while scanning a quoted scalar", "config/yaml-open-quote"),
    ("found undefined alias", "config/yaml-no-anchor"),
)
"""ruamel's words for the usual slips, to ours."""


@dataclass(slots=True)
class _Open:
    """A list or table whose end has not come yet."""

    spot: tuple[int, int]
    anchor: str | None
    items: list[Node] = field(default_factory=list)
    table: dict[str, Entry] | None = None
    key: tuple[str, tuple[int, int]] | None = None
    is_merge: bool = False
    """The key is a bare `<<`; a problem about it has been noted."""
    num_values: int = 1
    height: int = 1


@dataclass(frozen=True, slots=True)
class _Anchored:
    """A finished node that an alias may stand for, with how much it holds."""

    node: Node
    num_values: int
    height: int


def read_yaml(text: str, builder: TreeBuilder) -> Node | None:
    """Return the document, or None when the file says nothing."""
    composer = _Composer(builder)
    brackets = _MANY_BRACKETS.search(text)
    if brackets:
        builder.check_depth(Lines(text).spot(brackets.start()), MAX_DEPTH + 1)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            composer.take(event)
    except MarkedYAMLError as error:
        _stop_at_mark(error, builder)
    except (ValueError, OverflowError):  # what chr() says of an escape past U+10FFFF
        found = _ESCAPE.search(text)
        builder.problems.stop(builder.place(*Lines(text).spot(found.start() if found else 0)), "config/yaml-escape")
    except YAMLError as error:
        why = str(error).partition("\n")[0]
        builder.problems.stop(builder.place(1, 1), "config/yaml-syntax", why=why)
    return composer.root


def _stop_at_mark(error: MarkedYAMLError, builder: TreeBuilder) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    spot = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    words = f"{error.context or ''} {error.problem or ''}"
    if "quoted scalar" in words and error.context_mark and "end of stream" in words:
        spot = (error.context_mark.line + 1, error.context_mark.column + 1)
    code = next((code for sign, code in _CODES if sign in words), "config/yaml-syntax")
    if code == "config/yaml-open-quote" and "end of stream" not in words and "document separator" not in words:
        code = "config/yaml-syntax"
    place = builder.place(*spot)
    builder.problems.stop(place, code, path=place.source, why=(error.problem or error.context or "").strip())


class _Composer:
    """Puts events together into nodes; its own stack, so that depth is a number and never a crash."""

    def __init__(self, builder: TreeBuilder) -> None:
        self.root: Node | None = None
        self._builder = builder
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Anchored | None] = {}
        self._num_documents = 0

    def take(self, event: Any) -> None:
        """Take the next event. Any: ruamel is not typed."""
        spot = (event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(event, DocumentStartEvent):
            self._start_document(event, spot)
        elif isinstance(event, AliasEvent):
            self._take_alias(event.anchor, spot)
        elif isinstance(event, NodeEvent):
            self._take_node(event, spot)
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            self._close()

    def _start_document(self, event: Any, spot: tuple[int, int]) -> None:
        self._num_documents += 1
        if self._num_documents > 1:
            self._builder.problems.stop(self._builder.place(*spot), "config/yaml-two-documents")
        if event.version and tuple(event.version) != (1, 2):
            version = ".".join(str(part) for part in event.version)
            self._builder.add(spot, "config/yaml-version", version=version)

    def _take_node(self, event: Any, spot: tuple[int, int]) -> None:
        if event.anchor:
            self._anchors[event.anchor] = None
        tag = str(event.tag) if event.tag else None
        if tag and not (tag in _TEXT_TAGS and isinstance(event, ScalarEvent)):
            # Collections continue being read, so that the rest of the file is still checked.
            self._builder.add(spot, "config/yaml-tag", tag=_short_tag(tag))
        if isinstance(event, MappingStartEvent | SequenceStartEvent):
            self._builder.check_depth(spot, len(self._stack) + 1)
            table: dict[str, Entry] | None = {} if isinstance(event, MappingStartEvent) else None
            self._refuse_as_key(spot)
            self._stack.append(_Open(spot, event.anchor, table=table))
            return
        if self._wants_key():
            self._take_key(event, spot)
            return
        is_text = tag in _TEXT_TAGS or (event.style is not None and event.style != "")
        node = self._builder.scalar(event.value if is_text else read_scalar(event.value), spot)
        if tag and tag not in _TEXT_TAGS:
            node = Node(None, *spot, is_broken=True)
        self._place_node(_Anchored(node, 1, 0), event.anchor)

    def _take_key(self, event: Any, spot: tuple[int, int]) -> None:
        self._stack[-1].is_merge = event.value == "<<" and not event.style
        if self._stack[-1].is_merge:
            self._builder.add(spot, "config/yaml-merge")
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(Node(event.value, *spot), 1, 0)
        self._stack[-1].key = (event.value, spot)

    def _take_alias(self, name: str, spot: tuple[int, int]) -> None:
        self._refuse_as_key(spot)
        if name not in self._anchors:
            self._builder.problems.stop(self._builder.place(*spot), "config/yaml-no-anchor", why=name)
        target = self._anchors[name]
        if target is None:
            self._builder.problems.stop(self._builder.place(*spot), "config/yaml-endless-alias", name=name)
        self._builder.count(spot, target.num_values)
        self._builder.check_depth(spot, len(self._stack) + target.height)
        self._place_node(target, None)

    def _wants_key(self) -> bool:
        return bool(self._stack) and self._stack[-1].table is not None and self._stack[-1].key is None

    def _refuse_as_key(self, spot: tuple[int, int]) -> None:
        if self._wants_key():
            self._builder.problems.stop(self._builder.place(*spot), "config/key-not-text")

    def _close(self) -> None:
        done = self._stack.pop()
        node = Node(done.items if done.table is None else done.table, *done.spot)
        self._place_node(_Anchored(node, done.num_values, done.height), done.anchor)

    def _place_node(self, made: _Anchored, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = made
        if not self._stack:
            self.root = made.node
            return
        outer = self._stack[-1]
        outer.num_values += made.num_values + 1
        outer.height = max(outer.height, made.height + 1)
        if outer.table is None:
            outer.items.append(made.node)
        elif outer.key is not None:
            key, spot = outer.key
            if outer.is_merge:
                made = _Anchored(Node(None, *spot, is_broken=True), 1, 0)
            self._builder.put(outer.table, key, spot, made.node)
            outer.key = None


def _short_tag(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")[:60]
