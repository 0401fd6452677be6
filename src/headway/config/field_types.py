"""What a field takes, read from its type: for messages, for hints and for words without quotes."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from headway.config.paths import IsPath
from headway.config.problems import Phrase

_NAMES: dict[object, str] = {bool: "bool", int: "int", float: "float", str: "text", type(None): "null"}


@dataclass(slots=True)
class Wanted:
    """The kinds of value a field takes."""

    kinds: list[str] = field(default_factory=list)
    """Of bool, int, float, text, null, list, table, any."""
    choices: list[object] = field(default_factory=list)
    """Values of a Literal."""
    bounds: list[str] = field(default_factory=list)
    """Like `>= 1`, of the kind before them."""
    is_path: bool = False
    """Names a file or a folder."""

    def takes(self, kind: str) -> bool:
        """Say whether values of this kind pass."""
        return kind in self.kinds or "any" in self.kinds

    def takes_text(self, text: str) -> bool:
        """Say whether this text passes as text."""
        return self.takes("text") or text in self.choices

    def phrase(self) -> Phrase:
        """Return it in words: `a whole number >= 1 or null`."""
        parts: list[Phrase] = []
        if self.choices:
            # Nearly always texts; what is not is shown as YAML writes it.
            listed = ", ".join(str(choice) for choice in self.choices)
            parts.append(
                Phrase("config/type-choice" if len(self.choices) > 1 else "config/type-word", {"choices": listed})
            )
        for kind in self.kinds:
            if kind in ("int", "float") and self.bounds:
                code = "config/type-int-within" if kind == "int" else "config/type-float-within"
                parts.append(Phrase(code, {"bounds": self.bounds}))
            else:
                parts.append(Phrase(f"config/type-{kind}"))
        if not parts:
            return Phrase("config/type-any")
        joined = parts[0]
        for part in parts[1:]:
            joined = Phrase("config/type-or", {"left": joined, "right": part})
        return joined


def read_wanted(info: FieldInfo) -> Wanted:
    """Return what a field takes."""
    wanted = Wanted()
    _add(info.annotation, info.metadata, wanted)
    # null last: "a number or null" is how people say it
    wanted.kinds.sort(key=lambda kind: kind == "null")
    return wanted


def find_section(annotation: object) -> type[BaseModel] | None:
    """Return the section a field holds (`X` or `X | None`), or None when it holds a value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if _is_union(annotation):
        inner = [arm for arm in typing.get_args(annotation) if arm is not type(None)]
        return find_section(inner[0]) if len(inner) == 1 else None
    if typing.get_origin(annotation) is typing.Annotated:
        return find_section(typing.get_args(annotation)[0])
    return None


def _add(annotation: Any, metadata: Iterable[object], wanted: Wanted) -> None:
    """Any: types are not types of anything narrower."""
    origin, arms = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        _add(arms[0], (*metadata, *arms[1:]), wanted)
    elif _is_union(annotation):
        for arm in arms:
            _add(arm, (), wanted)
    elif origin is Literal:
        wanted.choices.extend(arms)
    else:
        kind = _kind(annotation, origin)
        if kind not in wanted.kinds:
            wanted.kinds.append(kind)
        if kind in ("int", "float"):
            wanted.bounds.extend(bound for bound in _bounds(metadata) if bound not in wanted.bounds)
        wanted.is_path |= any(isinstance(item, IsPath) for item in metadata)


def _kind(annotation: Any, origin: Any) -> str:
    """Any: as above."""
    known = origin or annotation
    if known in _NAMES:
        return _NAMES[known]
    if isinstance(known, type) and issubclass(known, dict | BaseModel):
        return "table"
    if isinstance(known, type) and issubclass(known, list | tuple | set | frozenset):
        return "list"
    return "any" if known is Any or not isinstance(known, type) else "text"


def _bounds(metadata: Iterable[object]) -> Iterable[str]:
    for item in metadata:
        if isinstance(item, FieldInfo):
            yield from _bounds(item.metadata)
        elif isinstance(item, Ge):
            yield f">= {item.ge}"
        elif isinstance(item, Gt):
            yield f"> {item.gt}"
        elif isinstance(item, Le):
            yield f"<= {item.le}"
        elif isinstance(item, Lt):
            yield f"< {item.lt}"


def _is_union(annotation: object) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)
