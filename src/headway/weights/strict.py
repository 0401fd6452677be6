"""Reading JSON that may be torn, rotten or hostile: every value is checked, every refusal names its place."""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from headway.errors import CheckpointError

LARGEST: Final = (1 << 63) - 1
"""Largest number a count, a size or an offset may be."""

_MOST_DIMS: Final = 64
_MOST_LETTERS: Final = 1024
_SHOWN_LETTERS: Final = 60
_FLOAT_KEY: Final = "$float"
_ODD_FLOATS: Final = ("nan", "inf", "-inf")


def parse_json(data: bytes, *, where: str) -> object:
    """Parse JSON; duplicate keys, NaN, deep nesting and endless digits end in a refusal, not in a surprise."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as err:
        why = "nesting > recursion limit" if isinstance(err, RecursionError) else shown(str(err))
        raise CheckpointError("checkpoint/not-json", path=where, why=why) from err


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the collector of garbage from looking at what is read: it would look at all of 100,000 new objects again
    and again and find nothing, which took three quarters of the time (10,500 tensors).
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def shown(value: object, letters: int = _SHOWN_LETTERS) -> str:
    """Return a value as short printable text, whatever it is."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST:
        return f"integer of {value.bit_length()} bits"
    text = value if isinstance(value, str) else f"array[{len(value)}]" if isinstance(value, list) else repr(value)
    text = "".join(letter if letter.isprintable() else "?" for letter in text[: letters + 1])
    return text if len(text) <= letters else f"{text[:letters]}…"


def finite_json(value: Any) -> Any:  # Any: whatever JSON can hold
    """Return the value with NaN and infinities as objects, `{"$float": "nan"}`; `parse_json` turns them back."""
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT_KEY: repr(value)}
    if isinstance(value, dict):
        return {key: finite_json(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        # Shapes and offsets, of which there are very many, hold whole numbers only.
        return value if all(type(inner) is int for inner in value) else [finite_json(inner) for inner in value]
    return value


class Reader:
    """Takes values out of parsed JSON; anything unexpected is refused with its place in the file."""

    def __init__(self, where: str) -> None:
        self.where = where

    def refuse(self, place: str, found: object, wanted: str) -> NoReturn:
        """Say what is at a place and what should."""
        raise CheckpointError("checkpoint/form", path=self.where, place=shown(place), found=shown(found), wanted=wanted)

    def mapping(self, value: object, place: str, keys: Collection[str] | None = None) -> dict[str, Any]:
        """Return an object; with `keys`, one that has exactly these."""
        if not isinstance(value, dict):
            self.refuse(place, value, "object")
        if keys is not None:
            if len(value) == len(keys) and all(key in value for key in keys):
                return value  # known keys need no further look; there may be 100,000 such objects
            odd = sorted(set(value) ^ set(keys))[0]
            self.refuse(f"{place}.{odd}", "(unknown)" if odd in value else "(absent)", ", ".join(keys))
        for key in value:
            if not key or len(key) > _MOST_LETTERS or not key.isprintable():
                self.refuse(place, key, f"string 1..{_MOST_LETTERS}")
        return value

    def items(self, value: object, place: str) -> list[Any]:
        """Return a list."""
        if not isinstance(value, list):
            self.refuse(place, value, "array")
        return value

    def text(self, value: object, place: str) -> str:
        """Return a printable text."""
        if not isinstance(value, str) or len(value) > _MOST_LETTERS or not value.isprintable():
            self.refuse(place, value, "string")
        return value

    def choice(self, value: object, place: str, choices: Collection[str]) -> str:
        """Return one of the known texts."""
        if not isinstance(value, str) or value not in choices:
            self.refuse(place, value, " | ".join(choices))
        return value

    def number(self, value: object, place: str) -> int:
        """Return a whole number of at least 0 that fits in 63 bits."""
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST:
            self.refuse(place, value, "integer 0..2^63-1")
        return value

    def shape(self, value: object, place: str) -> tuple[int, ...]:
        """Return the shape of a tensor whose bytes can be counted in 63 bits."""
        found = self.numbers(value, place)
        if len(found) > _MOST_DIMS or math.prod(found) > LARGEST >> 4:
            self.refuse(place, list(found), f"array 0..{_MOST_DIMS}, product < 2^59")
        return found

    def numbers(self, value: object, place: str) -> tuple[int, ...]:
        """Return a list of such numbers."""
        found = self.items(value, place)
        if not all(type(inner) is int and 0 <= inner <= LARGEST for inner in found):
            for inner in found:
                self.number(inner, place)
        return tuple(found)

    def real(self, value: object, place: str) -> float:
        """Return a number, NaN and infinities among them."""
        if isinstance(value, float):
            return value
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LARGEST:
            self.refuse(place, value, "number")
        return float(value)

    def flag(self, value: object, place: str) -> bool:
        """Return true or false."""
        if not isinstance(value, bool):
            self.refuse(place, value, "boolean")
        return value


def _unique(pairs: Sequence[tuple[str, Any]]) -> Any:  # Any: an object, or the float one stands for
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice")
    odd = found.get(_FLOAT_KEY) if len(found) == 1 else None
    return float(odd) if isinstance(odd, str) and odd in _ODD_FLOATS else found


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
