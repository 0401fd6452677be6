"""A small language to learn from: agreement over a distance, sums that come out, and names that must be remembered.

Token frequencies say little about it and context says nearly everything, so bits per byte fall far below the unigram
level within a few hundred steps when training works, and do not when it does not.
"""

from __future__ import annotations

import random
from collections.abc import Callable

GRAMMAR = 1
"""Raised when the same seed gives other documents."""

# fmt: off
_NAMES = [
    "Ada", "Bela", "Chen", "Dora", "Emil", "Fatima", "Goro", "Hana", "Igor", "Jia", "Kofi", "Lina", "Mei",
    "Nils", "Olga", "Pavel", "Quan", "Rosa", "Sami", "Tove", "Uma", "Viktor", "Wei", "Xenia", "Yusuf", "Zora",
]
# fmt: on
_ANIMALS = ["owl", "heron", "otter", "badger", "marten", "crane", "beaver", "falcon", "turtle", "hedgehog"]
_PLACES = ["harbour", "forest", "library", "market", "valley", "station", "garden", "island", "mill", "tower"]
_THINGS = ["lantern", "compass", "kettle", "violin", "ledger", "basket", "hammer", "mirror", "anchor", "saddle"]
_NOUNS = ["key", "boat", "letter", "bridge", "stone", "wheel", "clock", "ladder", "barrel", "window"]
_COLOURS = ["red", "green", "blue", "white", "black", "yellow", "grey", "brown"]
_STATES = ["broken", "ready", "heavy", "missing", "painted", "clean", "old", "empty"]
_SEEN = ["saw", "found", "carried", "sold", "repaired", "lost"]
_SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def write_documents(number: int, *, seed: int) -> list[str]:
    """Return documents of a few hundred bytes; a seed gives the same ones on every machine."""
    rng = random.Random(seed)
    return [_document(rng) for _ in range(number)]


def _document(rng: random.Random) -> str:
    """Begin with somebody, speak of other things, and come back to them at the end."""
    pick = rng.choice
    name, animal, place, thing = pick(_NAMES), pick(_ANIMALS), pick(_PLACES), pick(_THINGS)
    opening = f"{name} the {animal} lives near the {place} and keeps a {pick(_COLOURS)} {thing}."
    middle = [pick(_SENTENCES)(rng) for _ in range(rng.randint(2, 4))]
    ending = f"In the evening {name} the {animal} goes back to the {place} with the {thing}."
    return " ".join([opening, *middle, ending]) + "\n"


def _agreement(rng: random.Random) -> str:
    """The verb agrees with the first noun, not with the nouns that are between."""
    pick = rng.choice
    many = rng.random() < 0.5
    noun, verb = pick(_NOUNS), "are" if many else "is"
    between = f"that the {pick(_ANIMALS)}s near the {pick(_PLACES)} {pick(_SEEN)}"
    return f"The {noun}{'s' if many else ''} {between} {verb} {pick(_STATES)}."


def _sum(rng: random.Random) -> str:
    first, second = rng.randint(0, 12), rng.randint(0, 12)
    return f"{first} plus {second} is {first + second}."


def _product(rng: random.Random) -> str:
    first, second = rng.randint(2, 9), rng.randint(2, 9)
    return f"{first} times {second} is {first * second}."


def _count_up(rng: random.Random) -> str:
    first = rng.randint(0, 8)
    return f"Count with me: {', '.join(_SMALL[first : first + 5])}."


def _memory(rng: random.Random) -> str:
    """What was put somewhere is asked for by its owner's name."""
    pick = rng.choice
    (one, other), (this, that) = rng.sample(_NAMES, 2), rng.sample(_THINGS, 2)
    ask, answer = pick(((one, this), (other, that)))
    return f"{one} has the {this} and {other} has the {that}. Who has the {answer}? {ask}."


_SENTENCES: tuple[Callable[[random.Random], str], ...] = (_agreement, _agreement, _sum, _product, _count_up, _memory)
