"""The exception a Python program printed before it ended, found in the end of its output."""

from __future__ import annotations

import re
from typing import Any, Final

_MARK: Final = "Traceback (most recent call last)"
_PREFIX: Final = re.compile(r"^\[(?:rank)?\d+\]:?\s?", re.MULTILINE)
"""torch puts `[rank1]: ` before every line of a traceback."""
_ERROR: Final = re.compile(r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*)(?::\s?(.*))?$")
_NOT_ERRORS: Final = frozenset({"Traceback", "Thread", "File", "Exception ignored"})


def find_last_words(tail: bytes) -> dict[str, Any] | None:
    """Return the last traceback as an error report, or None when there is none.

    Of several joined by "During handling of …" the whole chain is kept, and the last exception is the one that counts.
    """
    text = _PREFIX.sub("", tail.decode("utf-8", "replace"))
    if _MARK not in text:
        return None
    lines = text[text.rindex(_MARK) :].splitlines()
    for place, line in enumerate(lines[1:], 1):
        found = _ERROR.match(line)
        if found and found[1].rpartition(".")[2] not in _NOT_ERRORS:
            rest = [found[2] or "", *_message_rest(lines[place + 1 :])]
            traceback = "\n".join(lines[: place + len(rest)])
            kind = found[1].rpartition(".")[2]
            return {"kind": "error", "type": kind, "text": "\n".join(rest).strip(), "traceback": traceback}
    return None


def _message_rest(lines: list[str]) -> list[str]:
    """Return the further lines of a message: up to an empty one, or a log line of its own."""
    rest = []
    for line in lines[:20]:
        if not line.strip() or line.startswith(("[W", "[E", "[I", "W1", "E1", "wandb:", "\x1b")):
            break
        rest.append(line)
    return rest
