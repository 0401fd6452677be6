"""What a bare word means under the YAML 1.2 core schema: `1e-4` is a number, `no` is text."""

from __future__ import annotations

import re

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
_NAN = frozenset({".nan", ".NaN", ".NAN"})
_MOST_DIGITS = 400
"""Past this a whole number is endless for us, and Python would take quadratic time to read it."""


def read_scalar(text: str) -> bool | int | float | str | None:
    """Return the value of a plain (unquoted) scalar."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        return read_whole(text, 10)
    if _OCTAL.fullmatch(text):
        return read_whole(text[2:], 8)
    if _HEX.fullmatch(text):
        return read_whole(text[2:], 16)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITE.fullmatch(text):
        return float("-inf" if text.startswith("-") else "inf")
    return float("nan") if text in _NAN else text


def read_whole(text: str, base: int) -> int | float:
    """Return a whole number, or infinity when it has more digits than anything countable."""
    return float("inf") if len(text) > _MOST_DIGITS else int(text, base)
