"""Gloss words: their clean-up, and the vocabulary that gives each its number."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from headway.errors import CheckpointError

BLANK: Final = 0
_BRACKETED: Final = re.compile(r"[({\[（][^)}\]）]*[)}\]）]")
_PUNCTUATION: Final = frozenset(string.punctuation + "，。！？；：、“”‘’（）《》【】…—·")


def clean_gloss(word: str, cleanup: str = "original") -> str:
    """Return a gloss as the vocabulary has it; empty when nothing is left of it.

    Brackets hold remarks (称赞（我） is 称赞) and a last digit tells variants of a sign apart (后2 is 后).
    """
    word = _BRACKETED.sub("", word.strip())
    if len(word) > 1 and word[-1].isdigit() and not word[0].isdigit():
        word = word[:-1]
    if word.startswith((",", "?")):
        word = {",": "，", "?": "？"}[word[0]] + word[1:]
    if word.isdecimal():
        word = str(int(word))
    if cleanup == "no_punct":
        word = "".join(letter for letter in word if letter not in _PUNCTUATION)
    return word


def split_glosses(text: str, cleanup: str = "original") -> tuple[str, ...]:
    """Return the words of a Gloss cell, cleaned; what is empty afterwards is left out."""
    return tuple(word for part in text.split("/") if (word := clean_gloss(part, cleanup)))


@dataclass(frozen=True)
class Vocabulary:
    """All words, sorted by code point; word i has number i + 1, and 0 is the blank."""

    words: tuple[str, ...]
    cleanup: str = "original"

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, 1)}

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the words in their order."""
        return hashlib.sha256("\n".join((self.cleanup, *self.words)).encode()).hexdigest()[:20]

    def encode(self, words: Sequence[str]) -> list[int]:
        """Return the numbers of words."""
        return [self._numbers[word] for word in words]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Return the words of numbers."""
        return [self.words[number - 1] for number in numbers]

    def to_json(self) -> dict[str, Any]:
        """Return what the guide calls vocabulary.json."""
        return {
            "word2idx": {" ": BLANK, **self._numbers},
            "idx2word": [" ", *self.words],
            "vocab_size": len(self.words),
            "text_cleanup": self.cleanup,
        }


def make_vocabulary(sentences: Iterable[Sequence[str]], cleanup: str) -> Vocabulary:
    """Return the vocabulary of cleaned sentences."""
    return Vocabulary(tuple(sorted({word for words in sentences for word in words})), cleanup)


def check_vocabulary(stored: dict[str, Any], here: Vocabulary) -> None:
    """Refuse weights whose words have other numbers: every output would be another word."""
    words = tuple(stored.get("idx2word", ()))[1:]
    if words == here.words:
        return
    first = next((i for i, (a, b) in enumerate(zip(words, here.words, strict=False)) if a != b), None)
    at = min(len(words), len(here.words)) if first is None else first
    raise CheckpointError(
        "tfnet/vocabulary",
        before=len(words),
        now=len(here.words),
        number=at + 1,
        was=words[at] if at < len(words) else "n/a",
        is_now=here.words[at] if at < len(here.words) else "n/a",
    )
