"""`a.b=c` on the command line: splits the words and reads their values.

A guide's script adds words of its own to what its user typed, and each value keeps its true origin: behind
`--words-of=SCRIPT` words are that script's, behind `--words-of=` again the user's; `--from-recipe=a.b` takes a key from
the recipe, whatever the file says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.config.problems import COMMAND_LINE, Phrase, Place, Problems
from headway.config.scalar import read_scalar
from headway.config.tree import MAX_BYTES, Node, TreeBuilder
from headway.secret import name_of_secret
from headway.units import count

WORDS_OF, FROM_RECIPE = "--words-of=", "--from-recipe="
_OPENING = ("[", "{", '"', "'")


@dataclass(frozen=True, slots=True)
class Word:
    """One setting as typed."""

    name: str
    text: str
    place: Place
    is_reset: bool = False
    """Not a value: the key is taken from the recipe."""


def split_words(words: Sequence[str], problems: Problems) -> list[Word]:
    """Return the settings of `a.b=c`, `--a.b=c`, `--set a.b=c` and `--set=a.b=c`, in order."""
    settings: list[Word] = []
    rest, source = list(words), COMMAND_LINE.source
    while rest:
        word = rest.pop(0)
        if word.startswith(WORDS_OF):
            source = word.removeprefix(WORDS_OF) or COMMAND_LINE.source
            continue
        if word.startswith(FROM_RECIPE):
            settings.append(Word(word.removeprefix(FROM_RECIPE), "", COMMAND_LINE, is_reset=True))
            continue
        if word == "--set":
            if not rest:
                problems.add(COMMAND_LINE, "config/set-without-word")
                break
            word = rest.pop(0)
        place = replace(COMMAND_LINE, source=source, word=word)
        word = word.removeprefix("--set=").removeprefix("--")
        name, sign, text = word.partition("=")
        name = name.strip()
        if sign and name:
            settings.append(Word(name, text, place))
        elif name_of_secret(word):
            _refuse_secret(word, problems)
            rest = rest[1:] if rest and "=" not in rest[0] else rest
        else:
            is_pair = bool(rest) and "=" not in rest[0] and not rest[0].startswith("-")
            following = rest.pop(0) if is_pair else "VALUE"
            place = replace(place, word=f"{place.word} {following}") if is_pair else place
            problems.add(place, "config/not-a-setting", word=word[:60], typed=f"{word[:60]}={following[:60]}")
    return settings


def _refuse_secret(word: str, problems: Problems) -> None:
    secret = name_of_secret(word)
    assert secret is not None
    problems.add(COMMAND_LINE, secret.code, key=word[:60], kind=Phrase(secret.kind), variable=secret.variable)


def read_value(text: str, place: Place, problems: Problems) -> Node:
    """Return the value of a word: a YAML 1.2 scalar, or a list, table or quoted text in YAML's flow style."""
    if len(text) > MAX_BYTES:
        problems.stop(place, "config/too-large", have=f"{count(len(text))} B", limit=f"{count(MAX_BYTES)} B")
    builder = TreeBuilder(place, problems)
    if not text.startswith(_OPENING):
        node = builder.scalar(read_scalar(text.strip()), (0, 0))
        return Node(node.value, is_broken=node.is_broken, raw=text)
    from headway.config.read_yaml import read_yaml

    node = read_yaml(text, builder) or Node(None)
    return Node(node.value, is_broken=node.is_broken)
