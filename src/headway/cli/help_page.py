"""Help on the page: lines that fit the terminal in both scripts. A Chinese character is two columns wide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from unicodedata import east_asian_width

import click

from headway.messages import say

__all__ = ["HelpFormatter", "cells", "wrap"]

_WIDE = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
_PIECES = re.compile(rf" +|[{_WIDE}]|[^ {_WIDE}]+")
_NEVER_FIRST = frozenset("，。；：、！？）”…")
_NEVER_LAST = frozenset("（“")
_FIRST_COLUMN = 30
"""The widest first column of a list; what is wider gets a line of its own."""


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def wrap(text: str, width: int) -> list[str]:
    """Return a text in lines of at most so many columns; words stay whole, Chinese breaks between characters."""
    lines, line = [], ""
    for piece in _joined(_PIECES.findall(text)):
        if line and cells(line + piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = piece.lstrip()
        else:
            line += piece
    return [*lines, line.rstrip()] if line.strip() else lines


def _joined(pieces: Sequence[str]) -> Iterator[str]:
    """Keep punctuation with the character it belongs to."""
    held = ""
    for place, piece in enumerate(pieces):
        held += piece
        following = pieces[place + 1] if place + 1 < len(pieces) else " "
        if held[-1] not in _NEVER_LAST and following[0] not in _NEVER_FIRST:
            yield held
            held = ""


class HelpFormatter(click.HelpFormatter):
    """Writes click's usage, headings and lists with our words and widths."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the line that shows how a command is called."""
        self.write(f"{prefix or say('cli/head-usage')}{prog} {args}".rstrip() + "\n")

    def write_heading(self, heading: str) -> None:
        """Write a heading, which brings its own colon."""
        self.write(f"{'':>{self.current_indent}}{heading}\n")

    def write_prose(self, text: str) -> None:
        """Write paragraphs wrapped to the page; lines that begin with a space, the examples, stay as they are."""
        paragraph: list[str] = []
        for line in [*text.splitlines(), ""]:
            if line and not line.startswith(" "):
                paragraph.append(line)
                continue
            self._write_lines(wrap(_one_line(paragraph), self.width - self.current_indent))
            paragraph.clear()
            self._write_lines([line])
        self.buffer.pop()

    def _write_lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.write(f"{'':>{self.current_indent}}{line}".rstrip() + "\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = _FIRST_COLUMN, col_spacing: int = 2) -> None:
        """Write a list in two columns."""
        rows = list(rows)
        first = min(max(cells(term) for term, _ in rows), col_max)
        left = self.current_indent + first + col_spacing
        for term, text in rows:
            lines = wrap(text, self.width - left)
            head = f"{'':>{self.current_indent}}{term}"
            if cells(term) <= first and lines:
                head += " " * (left - cells(head)) + lines.pop(0)
            self.write(head + "\n")
            for line in lines:
                self.write(" " * left + line + "\n")


def _one_line(lines: Sequence[str]) -> str:
    """Join the lines of a paragraph; no space is wanted between two Chinese characters."""
    joined = ""
    for line in lines:
        is_tight = not joined or cells(joined[-1]) == 2 or cells(line[0]) == 2
        joined += line if is_tight else f" {line}"
    return joined
