"""What a shell text is made of: words with their pieces, and operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["text", "variable", "command", "arithmetic"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word: plain text, or something the shell would replace."""

    kind: Kind
    raw: str
    """The text, or the expression as written."""
    is_quoted: bool = False
    name: str = ""
    """Of a variable."""
    rest: str = ""
    """What follows the name inside `${…}`, or the inside of `$(…)` and `$((…))`."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word, as it was written."""

    pieces: tuple[Piece, ...]
    line: int
    array: tuple[Word, ...] | None = None
    """The elements of `NAME=(…)`; the pieces hold `NAME=`."""

    @property
    def plain(self) -> str | None:
        """The text if nothing of it is quoted or replaced, as keywords and names must be."""
        if self.array is not None or any(piece.kind != "text" or piece.is_quoted for piece in self.pieces):
            return None
        return "".join(piece.raw for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Operator:
    """A sign between words; a redirect holds its target or the text of its heredoc."""

    sign: str
    line: int
    is_redirect: bool = False
    target: Word | None = None
    body: str | None = None
    is_literal: bool = False
    """A heredoc whose mark is quoted: nothing in it is replaced."""


Token = Word | Operator


@dataclass(frozen=True, slots=True)
class Slip:
    """Something the author did not mean as written."""

    code: str
    line: int


@dataclass(slots=True)
class Lexed:
    """The tokens of a text and the slips in it."""

    tokens: list[Token] = field(default_factory=list)
    slips: list[Slip] = field(default_factory=list)
