"""Text as people paste it: prompts, fences, notebook marks, Windows line ends."""

from __future__ import annotations

import re

_PROMPT = re.compile(
    r"^([ \t]*)(?:\([\w.-]+\)[ \t]*)?(?:\[?[\w.-]+@[\w.-]+(?::|[ \t])[^\s$#]*\]?[ \t]?)?[$❯➜%][ \t]+(?=\S)",
    re.MULTILINE,
)
_NOTEBOOK = re.compile(r"^([ \t]*)[!%](?=[A-Za-z./])", re.MULTILINE)
_CELL = re.compile(r"^[ \t]*%%\w[^\n]*$", re.MULTILINE)
_MAGIC_RUN = re.compile(r"^([ \t]*)%run[ \t]+(?:-[a-zA-Z][ \t]+)*", re.MULTILINE)
_MAGIC_ENV = re.compile(r"^([ \t]*)%(?:set_)?env[ \t]+(\w+)(?:=|[ \t]+)", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_POWERSHELL = re.compile(r"^([ \t]*)\$env:(\w+)[ \t]*=[ \t]*", re.MULTILINE | re.IGNORECASE)
_ARROW = re.compile(r"(?<!\\\n)^([ \t]*)>{1,3}[ \t]+(?=[\w./~$]+[ \t=]+\S)", re.MULTILINE)
"""`> python x.py` is a prompt; `> log.txt` is a redirect."""
_CONTINUED = re.compile(r"(?<=\\\n)[ \t]*>[ \t]+", re.MULTILINE)
_DOUBLED = re.compile(r"(?<=[ \t])\\\\[ \t]*$(?=\n)", re.MULTILINE)
"""A continuation that went through a string of another language on its way."""
_ROOT = re.compile(
    r"^([ \t]*)(?:\([\w.-]+\)[ \t]*)?\[?[\w.-]+@[\w.-]+(?::|[ \t])[^\s$#]*\]?#[ \t]+(?=\S)", re.MULTILINE
)
_CARET = re.compile(r"(?<=[ \t])\^[ \t]*$(?=\n)", re.MULTILINE)
_BACKTICK = re.compile(r"(?<=[ \t])`[ \t]*$(?=\n)", re.MULTILINE)
_PAIRS = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "\u200b": "", "\ufeff": ""})


def tidy(text: str) -> tuple[str, list[tuple[str, int]]]:
    """Return the text as a shell would want it, line for line, and the slips that were cured."""
    slips: list[tuple[str, int]] = []
    if "\r\n" in text:
        place = text.find("\\\r\n")
        slips.append(("adopt/slip-crlf", text.count("\n", 0, max(place, 0)) + 1))
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_PAIRS).replace("\0", "")
    text = _DOUBLED.sub(r"\\", _FENCE.sub("", text))
    text = _ARROW.sub(r"\1", _ROOT.sub(r"\1", _PROMPT.sub(r"\1", text)))
    if 1 < text.count("\\\n") == len(_CONTINUED.findall(text)):
        text = _CONTINUED.sub("", text)  # the shell's second prompt stands before every line but the first
    text = _CARET.sub(r"\\", text)
    if len(_BACKTICK.findall(text)) == text.count("`"):  # none of them belongs to a command substitution
        text = _BACKTICK.sub(r"\\", text)
    text = _CELL.sub("", text)
    text = _MAGIC_ENV.sub(r"\1export \2=", _MAGIC_RUN.sub(r"\1python ", text))
    text = _NOTEBOOK.sub(r"\1", text)
    return _POWERSHELL.sub(r"\1export \2=", text), slips
