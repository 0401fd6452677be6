"""A launcher's own flags: where they end, and what they say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headway.adopt.shell.expand import Said

_PLACEHOLDER = re.compile(r"[<\[{].*[>\]}]|\.\.\.|…")
_OPTIONAL = re.compile(
    r"[\[<{][^\[\]<>{}]*(?:args|arguments|opts|options|flags|params|parameters)[^\[\]<>{}]*[\]>}]", re.IGNORECASE
)
_ARRAY = re.compile(r"\$\{\w+\[[@*]\]\}")
_VARIABLE = re.compile(r"\$\{?(?:\w+(?:\[[@*]\])?|[@*])\}?")
_LONG_DASH = re.compile(r"[\u2012-\u2015\u2212](?=[A-Za-z])")
"""Word processors turn `--flag` into a long dash; nobody means one."""
_HOLDS_FLAGS = re.compile(r"\$\{?\w*(?:args?|opts?|options?|flags?|params|extra)\w*(?:\[[@*]\])?\}?", re.IGNORECASE)
"""`torchrun $DIST_ARGS train.py`: a variable that is called so holds flags and is not the script."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of one launcher, names with underscores and without dashes."""

    takes: frozenset[str]
    bare: frozenset[str] = frozenset()
    short: Mapping[str, str] = field(default_factory=dict)
    """Other names, and short ones: `n` for `nproc`."""
    pairs: frozenset[str] = frozenset()
    """Flags with two values: `-mca NAME VALUE`."""
    can_shorten: bool = True
    """Whether argparse completes the beginning of a name."""


def flags(takes: str, bare: str = "", *, pairs: str = "", can_shorten: bool = True, **short: str) -> Flags:
    """Make the table of a launcher from words apart by blanks."""
    return Flags(frozenset(takes.split()), frozenset(bare.split()), short, frozenset(pairs.split()), can_shorten)


@dataclass(slots=True)
class Options:
    """The flags that were given, and the words behind them."""

    given: dict[str, list[Said]] = field(default_factory=dict)
    rest: tuple[Said, ...] = ()
    has_dashes: bool = False
    """Whether `--` ended the flags."""

    def has(self, *names: str) -> bool:
        """Return whether one of the flags is given."""
        return any(name in self.given for name in names)

    def get(self, *names: str) -> Said | None:
        """Return the last value of the first flag that is given."""
        for name in names:
            if name in self.given:
                return self.given[name][-1]
        return None

    def text(self, *names: str) -> str | None:
        """Return a value as written, or None."""
        found = self.get(*names)
        return None if found is None else found.text

    def number(self, *names: str) -> int | None:
        """Return a value as a number, or None where it is open or no number."""
        return number(self.get(*names))

    def plain(self) -> dict[str, str]:
        """Return the flags with their last values; `...` stands for flags that were left out."""
        left_out = {"...": ""} if self.rest and is_dots(self.rest[0].text) else {}
        return {name: values[-1].text for name, values in self.given.items()} | left_out


def number(found: Said | None) -> int | None:
    """Return a word as a number, or None where it is absent, open or no number."""
    if found is None or not found.is_known or not re.fullmatch(r"\d{1,9}", found.text.strip()):
        return None
    return int(found.text)


def known(found: Said | None) -> str | None:
    """Return a word, or None where it is absent, open, empty or a placeholder in brackets."""
    if found is None or not found.is_known or not found.text or is_placeholder(found.text):
        return None
    return found.text


def is_placeholder(text: str) -> bool:
    """Return whether a word stands for another: `<path>`, `{name}`, `[choice]`, `...`."""
    return _PLACEHOLDER.fullmatch(text) is not None


def is_dots(text: str) -> bool:
    """Return whether a word says that something was left out."""
    return text in ("...", "…", "......")


_PROGRAM = re.compile(
    r"(?:.*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|bash|sh|mpirun|horovodrun|composer|msrun|xtuner)|\S+\.(?:py|sh)"
)


def _is_aside(words: Sequence[Said], at: int) -> bool:
    """Whether `srun $EXTRA -l torchrun` continues behind a variable that nobody knows: a program still follows."""
    word = words[at]
    if word.is_known or not _VARIABLE.fullmatch(word.text) or at + 1 >= len(words):
        return False
    after = words[at + 1].text
    is_next = after.startswith("-") or _PROGRAM.fullmatch(after) or _VARIABLE.fullmatch(after)
    return bool(is_next) and any(_PROGRAM.fullmatch(one.text) for one in words[at + 1 :])


def _is_rest(words: Sequence[Said], at: int) -> bool:
    """Whether a word stands for an array that nobody knows: it holds flags, unless nothing follows it."""
    return at + 1 < len(words) and not words[at].is_known and _ARRAY.fullmatch(words[at].text) is not None


def read_options(words: Sequence[Said], table: Flags, *, starts_program: bool = False) -> Options:
    """Read flags up to the first word that is neither a flag nor the value of one.

    `starts_program`: what follows is a command of its own, so that an unknown variable before it can only hold flags.
    """
    found, at = Options(), 0
    while at < len(words):
        text = _LONG_DASH.sub("--", words[at].text, count=1)
        if text == "--":
            found.has_dashes = True
            at += 1
            break
        if (text.startswith("[-") and text.endswith("]")) or (_OPTIONAL.fullmatch(text) and at + 1 < len(words)):
            at += 1
            continue
        if text.startswith("[") and (end := _closing(words, at)) and (end + 1 < len(words) or text.startswith("[-")):
            at = end + 1
            continue
        if (starts_program and _is_aside(words, at)) or _is_rest(words, at):
            at += 1
            continue
        if _HOLDS_FLAGS.fullmatch(text) and not words[at].is_known and at + 1 < len(words):
            at += 1
            continue
        if not text.startswith("-") or len(text) < 2:
            break
        at += _read_one(text, words[at:], table, found)
    found.rest = tuple(words[at:])
    return found


def _read_one(text: str, words: Sequence[Said], table: Flags, found: Options) -> int:
    """Take one flag; return how many words it used."""
    body = text.lstrip("-")
    name, sign, _ = body.partition("=")
    name = _full_name(name, table, is_long=text.startswith("--"))
    if sign:
        found.given.setdefault(name, []).append(words[0].tail(words[0].text.index("=") + 1))
        return 1
    if name in table.pairs:
        if len(words) > 2:
            found.given.setdefault(name, []).append(Said(f"{words[1].text}={words[2].text}", words[2].names))
        return 3
    if name in table.bare:
        found.given.setdefault(name, []).append(Said(""))
        return 1
    if name not in table.takes:
        glued = _glued(body, table) if not text.startswith("--") else None
        if glued:
            found.given.setdefault(glued, []).append(words[0].tail(words[0].text.index(body[0]) + 1))
            return 1
        if not _takes_next(words):
            found.given.setdefault(name, []).append(Said(""))
            return 1
    if len(words) < 2:
        found.given.setdefault(name, []).append(Said(""))
        return 1
    end = _closing(words, 1)
    if end:
        found.given.setdefault(name, []).append(Said(" ".join(word.text for word in words[1 : end + 1])))
        return end + 1
    found.given.setdefault(name, []).append(words[1])
    return 2


def _closing(words: Sequence[Said], at: int) -> int:
    """Return where a placeholder of several words ends, `[GPUs of each node]`; 0 for any other word."""
    if not words[at].text.startswith("[") or "]" in words[at].text:
        return 0
    return next((end for end in range(at + 1, min(at + 8, len(words))) if words[end].text.endswith("]")), 0)


def _glued(body: str, table: Flags) -> str | None:
    """Return the flag of `-n8` or `-oL`: a short flag with its value behind it."""
    name = table.short.get(body[0], body[0])
    if len(body) < 2 or name not in table.takes:
        return None
    # A number is never a part of the flag; `-oL` is two flags to no wrapper, but `-foo` may be a long one.
    is_value = body[1].isdigit() or body[1] in "$<{" or (len(body) == 2 and not table.can_shorten and body[1].isupper())
    return name if is_value else None


def _full_name(name: str, table: Flags, *, is_long: bool) -> str:
    name = name.replace("-", "_")
    name = table.short.get(name, name)
    if name in table.takes or name in table.bare or name in table.pairs or not is_long or not table.can_shorten:
        return name
    begun = [one for one in (table.takes | table.bare) if one.startswith(name)]
    return begun[0] if len(begun) == 1 and len(name) > 2 else name


def _takes_next(words: Sequence[Said]) -> bool:
    """Guess for a flag nobody knows: its value follows unless that looks like a flag or like a script."""
    if len(words) < 2:
        return False
    text = words[1].text
    return not (text.startswith("-") or text.endswith((".py", ".sh")) or text in ("python", "python3"))
