"""Text as people paste it: prompts, fences, notebook marks, Windows line ends."""

from __future__ import annotations

import re

_PROMPT = re.compile(
    r"^([ \t]*)(?:\([\w.-]+\)[ \t]*)?(?:\[?[\w.-]+@[\w.-]+(?::|[ \t])[^\s$#]*\]?[ \t]?)?[$❯➜%][ \t]+(?=\S)",
    re.MULTILINE,
)
_NOTEBOOK = re.compile(r"^([ \t]*)[!%](?=[A-Za-z./])", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_POWERSHELL = re.compile(r"^([ \t]*)\$env:(\w+)[ \t]*=[ \t]*", re.MULTILINE | re.IGNORECASE)
_PAIRS = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "\u200b": "", "\ufeff": ""})


def tidy(text: str) -> tuple[str, list[tuple[str, int]]]:
    """Return the text as a shell would want it, line for line, and the slips that were cured."""
    slips: list[tuple[str, int]] = []
    if "\r\n" in text:
        place = text.find("\\\r\n")
        slips.append(("adopt/slip-crlf", text.count("\n", 0, max(place, 0)) + 1))
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_PAIRS).replace("\0", "")
    text = _FENCE.sub("", text)
    text = _PROMPT.sub(r"\1", text)
    text = _NOTEBOOK.sub(r"\1", text)
    return _POWERSHELL.sub(r"\1export \2=", text), slips
