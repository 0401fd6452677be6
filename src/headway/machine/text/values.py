"""Reading single printed values: numbers with units, `N/A`, `ERR!`. An absent reading is None, never 0."""

from __future__ import annotations

import re
from typing import Any

Facts = dict[str, Any]
"""Facts as they were printed, under the names of docs/decisions/0015. Any: numbers, texts, lists of facts."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_ENDLESS = re.compile(r"\d{19,}")
"""No reading has as many digits, and Python refuses to read numbers of thousands."""
_QUOTED = re.compile(r"^[ \t]*(?:#|>|//)[ \t]?(?=[|+])", re.M)
"""A table pasted as a comment or a quotation."""
_MAIL = re.compile(r"^[ \t]*>[ \t]?", re.M)
_ABSENT = {"", "n/a", "na", "[n/a]", "not found", "[not found]", "not supported", "[not supported]", "-", "--"}
_ABSENT_WITH_REASON = ("[requested functionality", "requested functionality", "[gpu requires", "n/a (")
_NUMBER = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,9})?")
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50, "e": 1 << 60}


def clean(text: str) -> str:
    """Return the text without escapes, carriage returns, null bytes, endless numbers and marks of a quotation."""
    plain = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    plain = _QUOTED.sub("", _ENDLESS.sub(lambda found: found[0][:18], plain))
    # A whole text quoted, as in a mail or a thread.
    lines = [line for line in plain.splitlines() if line.strip()]
    return _MAIL.sub("", plain) if lines and all(line.lstrip().startswith(">") for line in lines) else plain


def is_absent(value: str | None) -> bool:
    """Whether the tool printed that it has no such reading."""
    word = (value or "").strip().lower()
    return word in _ABSENT or word.startswith(_ABSENT_WITH_REASON)


def text_or_none(value: str | None) -> str | None:
    """Return the value as printed; None when there is no reading."""
    return None if value is None or is_absent(value) else value.strip()


def whole(value: str | None) -> int | str | None:
    """Return a whole number; what is not a number (`ERR!`) stays as printed."""
    found = number(value)
    return int(found) if isinstance(found, float) else found


def number(value: str | None) -> float | str | None:
    """Return the number in front of a unit; what is not a number (`ERR!`) stays as printed."""
    word = text_or_none(value)
    if word is None:
        return None
    found = _NUMBER.match(word)
    return float(found[0]) if found else word


def count_or_none(value: str | None) -> int | None:
    """Return a whole number, and None for everything else."""
    found = whole(value)
    return found if isinstance(found, int) else None


def bytes_of(value: object) -> int | None:
    """Return the bytes of `1.9G`, `63 GiB`, `64M`, `251.61 GB`, `7.692GiB` or `0`; None: not a size."""
    found = re.fullmatch(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([kKmMgGtTpPeE]?)(?:i?[bB]?|Bi)\s*", str(value))
    return int(float(found[1]) * _SIZES[found[2].lower()]) if found else None
