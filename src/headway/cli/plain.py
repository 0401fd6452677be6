"""Text on streams that cannot show all of it: terminals and pipes in GBK, Latin-1 or ASCII, names that are not text."""

from __future__ import annotations

import codecs
import sys
from typing import Final, TextIO

_NAME: Final = "headway-plain"
_ALIKE: Final = {
    "✓": "+",
    "✗": "x",
    "·": "-",
    "×": "x",
    "→": "->",
    "←": "<-",
    "↑": "^",
    "↓": "v",
    "…": "...",
    "–": "-",
    "—": "-",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "≈": "~",
    "°": "",
    "█": "#",
}
"""What our own texts use beyond ASCII, in ASCII."""


def degrade_streams() -> None:
    """Let stdout and stderr write what they can, and something readable for the rest, instead of failing."""
    codecs.register_error(_NAME, _replace)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # not where a test or a program has put its own
            reconfigure(errors=_NAME)


def can_write(text: str, stream: TextIO | None = None) -> bool:
    """Say whether stdout shows a text as it is."""
    try:
        text.encode(getattr(stream or sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Return what stands for what cannot be encoded: a sign alike, else the escape that JSON has for it."""
    assert isinstance(error, UnicodeEncodeError)
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(char: str) -> str:
    if char in _ALIKE:
        return _ALIKE[char]
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
