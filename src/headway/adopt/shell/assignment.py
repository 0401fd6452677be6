"""`NAME=value` before or in place of a command."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headway.adopt.shell.expand import Variables, expand_value, said
from headway.adopt.shell.tokens import Piece, Word

_OPTIONAL = re.compile(r"\[[A-Za-z_]\w*=.*")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\+?)=")


def split_assignment(word: Word) -> tuple[str, bool] | None:
    """Return the name and whether it is added to, if a word is an assignment."""
    first = word.pieces[0] if word.pieces else None
    if first is None or first.kind != "text" or first.is_quoted:
        return None
    match = _ASSIGNED.match(first.raw)
    return (match[1], bool(match[2])) if match else None


def value_of(word: Word) -> Word:
    """Return the part of an assignment behind the `=`."""
    match = _ASSIGNED.match(word.pieces[0].raw)
    assert match is not None, "only assignments come here"
    rest = word.pieces[0].raw[match.end() :]
    return Word((Piece("text", rest), *word.pieces[1:]), word.line)


def is_optional(words: list[Word], variables: Variables, names: set[str]) -> bool:
    """Set aside `[NAME=value]` before a command: what may be left out is not part of it, but its variables are open."""
    found = said(expand_value(words[0], variables))
    if not _OPTIONAL.match(found.text) or not found.text.endswith("]") or len(words) < 2:
        return False
    names |= found.names
    words.pop(0)
    return True


def join_spaced(words: Sequence[Word]) -> list[Word]:
    """Return the words of `export A = 1`, `export A= 1` and `export A =1` as the assignment that was meant."""
    joined: list[Word] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        plain = word.plain or ""
        after = rest[0] if rest else None
        if after is not None and re.fullmatch(r"[A-Za-z_]\w*", plain) and (after.plain or "").startswith("="):
            value = rest.pop(0)
            word = Word((Piece("text", plain + value.pieces[0].raw), *value.pieces[1:]), word.line)
            plain, after = word.plain or "", rest[0] if rest else None
        if after is not None and re.fullmatch(r"[A-Za-z_]\w*=", plain) and split_assignment(after) is None:
            word = Word((Piece("text", plain), *rest.pop(0).pieces), word.line)
        joined.append(word)
    return joined
