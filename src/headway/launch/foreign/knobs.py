"""The user's own words for a smaller batch: `per_device_train_batch_size/2,gradient_accumulation_steps*2`.

A script that is not ours has no config of ours. Which of its arguments or variables make the batch smaller, only the
user knows; once said, it can be done again after every out-of-memory error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headway.errors import UsageError

_KNOB: Final = re.compile(r"\s*(-{0,2}[A-Za-z][\w.\-]*?)\s*([*/])\s*([0-9]{1,4})\s*")
_NUMBER: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Knob:
    """One number of the line, and what becomes of it."""

    name: str
    is_divided: bool
    by: int

    def turned(self, value: int) -> int | None:
        """Return the next value; None: it does not divide."""
        if not self.is_divided:
            return value * self.by
        return value // self.by if value % self.by == 0 else None


@dataclass(frozen=True, slots=True)
class Turned:
    """A line with other numbers."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """Variables with other values."""
    changes: tuple[tuple[str, int, int], ...]
    """Name, value before, value now."""


def read_knobs(text: str) -> tuple[Knob, ...]:
    """Read `name/2,other*2`, or refuse."""
    found = [_KNOB.fullmatch(part) for part in text.split(",")]
    if not all(found) or any(int(one[3]) < 2 for one in found if one):
        raise UsageError("run/oom-knob", text=text)
    return tuple(Knob(one[1], one[2] == "/", int(one[3])) for one in found if one)


def turn(knobs: Sequence[Knob], argv: Sequence[str], environ: Mapping[str, str]) -> Turned | None:
    """Return the line with every number turned; None: one of them does not divide any more."""
    words, env, changes = list(argv), dict[str, str](), list[tuple[str, int, int]]()
    for knob in knobs:
        place = find_value(knob, words, environ)
        if place is None:
            return None
        at, prefix, value = place
        after = knob.turned(value)
        if after is None:
            return None
        changes.append((knob.name, value, after))
        if at is None:
            env[knob.name] = str(after)
        else:
            words[at] = f"{prefix}{after}"
    return Turned(tuple(words), env, tuple(changes))


def find_value(knob: Knob, argv: Sequence[str], environ: Mapping[str, str]) -> tuple[int | None, str, int] | None:
    """Return where a knob's number is: its word (none: a variable), what is before it in the word, the number.

    The last one counts, as argument parsers have it. `--batch-size 8`, `--batch_size=8`, `batch_size=8` and
    `+trainer.batch_size=8` are all words for it; a dash is an underscore.
    """
    wanted = _plain(knob.name)
    for at in reversed(range(len(argv))):
        name, sign, value = argv[at].partition("=")
        if sign and _plain(name) == wanted and _NUMBER.fullmatch(value):
            return at, f"{name}=", int(value)
        if at and argv[at - 1].startswith("-") and _plain(argv[at - 1]) == wanted and _NUMBER.fullmatch(argv[at]):
            return at, "", int(argv[at])
    value = environ.get(knob.name, "")
    return (None, "", int(value)) if _NUMBER.fullmatch(value) else None


def refuse_unknown_knobs(text: str, argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Refuse a knob whose number is nowhere in the line: at three in the morning it would be too late."""
    for knob in read_knobs(text):
        if find_value(knob, argv, environ) is None:
            raise UsageError("run/oom-knob-missing", name=knob.name)


def _plain(name: str) -> str:
    return name.lstrip("-+").replace("-", "_")
