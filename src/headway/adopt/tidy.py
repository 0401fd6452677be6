"""Text as people paste it: prompts, fences, notebook marks, Windows line ends."""

from __future__ import annotations

import re

_PROMPT = re.compile(
    r"^([ \t]*)(?:\([\w.-]+\)[ \t]*)?(?:\[?[\w.-]+@[\w.-]+(?::|[ \t])[^\s$#]*\]?[ \t]?|[\w.~/-]+(?=\$))?"
    r"[$❯➜%][ \t]+(?=\S)",
    re.MULTILINE,
)
_THEMED = re.compile(r"^([ \t]*)➜[ \t]+\S+[ \t]+git:\([^()\n]*\)[ \t]*(?:✗[ \t]*)?(?=\S)", re.MULTILINE)
_WINDOWS = re.compile(r"^([ \t]*)(?:\([\w.-]+\)[ \t]*)?(?:PS[ \t]+)?[A-Za-z]:\\[^\n>]*>[ \t]*(?=\S)", re.MULTILINE)
_NOTEBOOK = re.compile(r"^([ \t]*)[!%](?=[A-Za-z./])", re.MULTILINE)
_CELL = re.compile(r"^[ \t]*%%\w[^\n]*$", re.MULTILINE)
_MAGIC_RUN = re.compile(r"^([ \t]*)%run[ \t]+(?:-[a-ln-zA-Z][ \t]+)*", re.MULTILINE)
_MAGIC_MODULE = re.compile(r"^([ \t]*%run[ \t]+-m[ \t]+\S+)[ \t]+--(?=[ \t])", re.MULTILINE)
"""The notebook keeps the first `--` for itself."""
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
_BATCH_SET = re.compile(
    r"^([ \t]*)set[ \t]+(?:\"(\w+)=([^\"\n]*)\"|(\w+)=([^\n&|]*?))[ \t]*(?=$|[&|])", re.MULTILINE | re.I
)
_BATCH_REMARK = re.compile(r"^[ \t]*@?(?:rem\b|::)[^\n]*$", re.MULTILINE | re.IGNORECASE)
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_CHANGED = "[\n\r“”‘’\u200b\ufeff]"
_ASIDE = "\ue000-\uf8ff"
_MAX_ASIDE = 0xF8FF - 0xE000
_PAIRS = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "\u200b": "", "\ufeff": ""})


def tidy(text: str) -> tuple[str, list[tuple[str, int]]]:
    """Return the text as a shell would want it, line for line, and the slips that were cured.

    What is quoted is an argument and stays as it is.
    """
    slips: list[tuple[str, int]] = []
    if "\r\n" in text:
        place = text.find("\\\r\n")
        slips.append(("adopt/slip-crlf", text.count("\n", 0, max(place, 0)) + 1))
    text, kept = _set_aside(text)
    found = re.search("[“”‘’]", text)
    if found is not None:
        slips.append(("adopt/slip-typographic", text.count("\n", 0, found.start()) + 1))
    text = _tidy_bare(text)
    if kept:
        text = re.sub(f"[{_ASIDE}]", lambda one: kept[ord(one[0]) - ord(_ASIDE[0])], text)
    return text, slips


def _tidy_bare(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_PAIRS).replace("\0", "")
    text = _DOUBLED.sub(r"\\", _FENCE.sub("", text))
    for prompt in (_THEMED, _PROMPT, _ROOT, _WINDOWS, _ARROW):
        text = prompt.sub(r"\1", text)
    if 1 < text.count("\\\n") == len(_CONTINUED.findall(text)):
        text = _CONTINUED.sub("", text)  # the shell's second prompt is before every line but the first
    text = _read_batch(text)
    text = _CARET.sub(r"\\", text)
    if len(_BACKTICK.findall(text)) == text.count("`"):  # none of them belongs to a command substitution
        text = _BACKTICK.sub(r"\\", text)
    text = _CELL.sub("", text)
    text = _MAGIC_RUN.sub(r"\1python ", _MAGIC_MODULE.sub(r"\1", text))
    text = _MAGIC_ENV.sub(r"\1export \2=", text)
    text = _NOTEBOOK.sub(r"\1", text)
    return _POWERSHELL.sub(r"\1export \2=", text)


def _set_aside(text: str) -> tuple[str, list[str]]:
    """Put a sign in the place of every quoted part that a cure would change; return what each stands for."""
    kept: list[str] = []
    if _BATCH_SET.search(text) or re.search(f"[{_ASIDE}]", text):
        return text, kept
    parts: list[str] = []
    at = 0
    for quoted in _quoted_parts(text):
        found = text[slice(*quoted)]
        if re.search(_CHANGED, found) and len(kept) < _MAX_ASIDE:
            parts += [text[at : quoted[0]], chr(ord(_ASIDE[0]) + len(kept))]
            kept.append(found)
            at = quoted[1]
    return "".join([*parts, text[at:]]), kept


def _quoted_parts(text: str) -> list[tuple[int, int]]:
    """Return where quotes begin and end, comments left out; nothing where one of them is never closed."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
        elif char == "#" and (at == 0 or text[at - 1] in " \t\n;"):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif char in "'\"":
            closed = _QUOTED.match(text, at)
            if closed is None:
                return []
            found.append(closed.span())
            at = closed.end()
        else:
            at += 1
    return found


def find_paste(text: str) -> tuple[str, int] | None:
    """Return the code and the line of the first thing that a paste has brought along and a shell would not want."""
    place = text.find("\r\n")
    if place >= 0:
        return "adopt/slip-crlf", text.count("\n", 0, place) + 1
    for number, line in enumerate(_QUOTED.sub(lambda one: "\n" * one[0].count("\n"), text).split("\n"), 1):
        if re.search("[“”‘’]", line.partition(" #")[0]):
            return "adopt/slip-typographic", number
    plain = text.translate(_PAIRS)
    for number, (line, tidied) in enumerate(zip(plain.split("\n"), tidy(plain)[0].split("\n"), strict=False), 1):
        if line != tidied:
            return "adopt/slip-marks", number
    return None


def _read_batch(text: str) -> str:
    """Read a Windows script's `set NAME=value`, `%NAME%` and remarks as a shell's own."""
    names = {match[2] or match[4] for match in _BATCH_SET.finditer(text)}
    if not names:
        return text
    text = _BATCH_SET.sub(lambda one: f'{one[1]}export {one[2] or one[4]}="{one[3] or one[5] or ""}"', text)
    text = re.sub(rf"%({'|'.join(map(re.escape, sorted(names)))})%", r"${\1}", text)
    return _BATCH_REMARK.sub("", text)
