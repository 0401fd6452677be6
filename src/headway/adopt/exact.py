"""Shell text in, the one question that `headway run` asks of it: may bash expand it ahead, and nothing else happens?

The reader of `adopt` forgives slips and follows variables; what is to be *executed* must be bash's own reading. A text
that is one plain command can be expanded by bash itself, without being run, and then started word by word. Every other
text is run by bash as it is written. In doubt the answer is no, which is always right.
"""

from __future__ import annotations

import re
from typing import Final

_BEHIND: Final = re.compile(r"(?<![&|;<>\\])&[ \t\r\n]*\Z")
_ANOTHER: Final = re.compile(r"(?<![&|;<>\\])&(?![&>])")
QUOTED: Final = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
"""A word between quotes."""
_ESCAPED: Final = re.compile(r"\$'(?:\\.|[^'\\])*'", re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_VARIABLE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?-])")
_BRACED: Final = re.compile(r"\$\{[#!]?[A-Za-z_][A-Za-z0-9_]*")
_ARITHMETIC: Final = re.compile(r"\$\(\([A-Za-z0-9_ \t+*/%()-]*\)\)")
_OWN_STATE: Final = re.compile(r"_|PPID|BASH.*|LINENO|S?RANDOM|SECONDS|EPOCH.*|PIPESTATUS|FUNCNAME|DIRSTACK")
"""Variables that have another value in the shell that expands than in the one that would run the line."""
_KEYWORD_NAMES: Final = (
    "! { } [[ ]] case coproc do done elif else esac fi for function if in select then time until while"
)
_KEYWORDS: Final = frozenset(_KEYWORD_NAMES.split())
_MAX_NESTED: Final = 4


def stay_in_front(text: str) -> tuple[str, bool]:
    """Return a text that ends when its last command does, though it had a `&` behind it; and whether it had one.

    A lone command simply loses the sign, and keeps its exit code. Where others were put in the background before it,
    all are waited for.
    """
    found = _BEHIND.search(text)
    if found is None:
        return text, False
    rest = text[: found.start()].rstrip()
    return (f"{text}\nwait" if _ANOTHER.search(QUOTED.sub("", rest)) else rest), True


def find_command(text: str) -> int | None:
    """Return where the command word begins in a text that is one plain command; None for any other text.

    Plain: assignments, then words; quotes, backslashes, variables with their defaults, sums, globs, braces and tildes
    may be in them. No operator, redirect, substitution or keyword is: expanding it has no effect outside of the shell.
    """
    return _Scan(text).run()


class _Scan:
    """One pass; `None` from any step means that the text is not plain."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.command: int | None = None
        self.is_over = False
        """A line has ended behind the command."""

    def run(self) -> int | None:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t":
                self.at += 1
            elif char == "\n":
                self.is_over = self.is_over or self.command is not None
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif char == "#":
                self.at = self._line_end()
            elif self.is_over or not self._read_word():
                return None
        return self.command

    def _line_end(self) -> int:
        place = self.text.find("\n", self.at)
        return len(self.text) if place < 0 else place

    def _read_word(self) -> bool:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in " \t\n":
            if not self._read_part():
                return False
        word = self.text[start : self.at]
        if self.command is None:
            if _ASSIGNMENT.match(word):
                return True
            self.command = start
            # A bracket may make it an assignment to an array; a name broken over two lines is bash's to put together.
            return word not in _KEYWORDS and "[" not in word and "\\\n" not in word
        return True

    def _read_part(self) -> bool:
        char = self.text[self.at]
        if char in "|&;()<>`":
            return False
        if char == "\\":
            self.at += 2
            return self.at <= len(self.text)
        if char == "'":
            return self._jump(self.text.find("'", self.at + 1))
        if char == '"':
            return self._read_quoted()
        if char == "$":
            return self._read_dollar(is_quoted=False)
        self.at += 1
        return True

    def _jump(self, place: int) -> bool:
        self.at = place + 1
        return place >= 0

    def _read_quoted(self) -> bool:
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return True
            if char == "`" or (char == "$" and not self._read_dollar(is_quoted=True)):
                return False
            if char != "$":
                self.at += 2 if char == "\\" else 1
        return False

    def _read_dollar(self, *, is_quoted: bool) -> bool:
        """Step over `$NAME`, `${NAME…}` or `$((…))`; a `$` alone is a character."""
        end = _skip_dollar(self.text, self.at, is_quoted=is_quoted)
        self.at = self.at if end is None else end
        return end is not None


def _skip_dollar(text: str, at: int, *, is_quoted: bool, depth: int = 0) -> int | None:
    found = _VARIABLE.match(text, at)
    if found is not None:
        return None if _OWN_STATE.fullmatch(found[1]) else found.end()
    found = _ARITHMETIC.match(text, at)
    if found is not None:
        return found.end()
    if text.startswith("${", at):
        return _skip_braced(text, at, is_quoted=is_quoted, depth=depth)
    escaped = None if is_quoted else _ESCAPED.match(text, at)
    if escaped is not None:
        return escaped.end()
    # `$"…"`, `$(…)`, `$[…]`, `$$`, `$!` are left to bash; what is none of them is a dollar sign.
    after = text[at + 1 : at + 2]
    is_sign = not after or after in " \t\n/=.,:%" or (is_quoted and after == '"')
    return at + 1 if is_sign else None


def _skip_braced(text: str, at: int, *, is_quoted: bool, depth: int) -> int | None:
    found = _BRACED.match(text, at)
    if found is None or depth >= _MAX_NESTED or _OWN_STATE.fullmatch(found[0].lstrip("${#!")):
        return None
    place: int | None = found.end()
    while place is not None and place < len(text):
        char = text[place]
        if char == "}":
            return place + 1
        if char in "'\"`\\{()<>|&;\n":
            return None
        place = place + 1 if char != "$" else _skip_dollar(text, place, is_quoted=is_quoted, depth=depth + 1)
    return None
