"""Text on its way to a terminal: what came from a run must not steer the terminal, and columns must fit."""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from typing import Final, TextIO

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x1b\\|\x07|$)|[ -/]*[0-~])")
# C0 and C1 controls, and the marks that turn the direction of text round.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean_text(text: str) -> str:
    """Return one line without escape sequences; other control characters are shown as `\\x07`, tabs as spaces."""
    text = _ESCAPES.sub("", text.rstrip("\r\n")).expandtabs(4)
    text = _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
    return text.encode("utf-8", "replace").decode("utf-8")


def columns_of(stream: TextIO) -> int:
    """Return how many columns of a terminal one line may fill without the next one being touched.

    The last column stays free: a terminal that wraps there would leave a copy of the line behind. What is asked is the
    terminal that is written to; standard output may go to a file at the same time.
    """
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return (columns or shutil.get_terminal_size().columns) - 1


def cell_width(text: str) -> int:
    """Return how many terminal columns a text takes; Chinese characters take two."""
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit_text(text: str, width: int) -> str:
    """Return the text, cut with an ellipsis so that it takes at most `width` columns."""
    if cell_width(text) <= width:
        return text
    kept, used = [], 1
    for char in text:
        used += _width(char)
        if used > width:
            break
        kept.append(char)
    return "".join(kept) + "…" if width > 0 else ""
