"""Whether a condition holds, where the text alone settles it."""

from __future__ import annotations

from collections.abc import Sequence

from headway.adopt.expand import Said, Variables, expand_value, said
from headway.adopt.syntax import Node, Simple

_NUMBERS = {"-eq": (0,), "-ne": (-1, 1), "-lt": (-1,), "-le": (-1, 0), "-gt": (1,), "-ge": (0, 1)}


def holds(condition: Sequence[Node], variables: Variables) -> bool | None:
    """Return True or False for a single test over known values, else None."""
    if len(condition) != 1 or not isinstance(condition[0], Simple):
        return None
    words = [said(expand_value(word, variables)) for word in condition[0].words]
    if words[0].text not in ("[", "[[", "test"):
        return None
    words = words[1:-1] if words[0].text != "test" else words[1:]
    is_negated = bool(words) and words[0].text == "!"
    verdict = _test(words[is_negated:], variables)
    return (not verdict) if is_negated and verdict is not None else verdict


def _test(words: Sequence[Said], variables: Variables) -> bool | None:
    if len(words) == 2 and words[0].text in ("-z", "-n"):
        is_empty = _is_empty(words[1], variables)
        return None if is_empty is None else is_empty == (words[0].text == "-z")
    if len(words) != 3 or not (words[0].is_known and words[2].is_known):
        return None
    left, sign, right = (word.text for word in words)
    if sign in ("=", "==", "!="):
        return (left == right) == (sign != "!=") if not set("*?[") & set(right) else None
    if sign in _NUMBERS and left.strip("-").isdigit() and right.strip("-").isdigit():
        a, b = int(left[:18]), int(right[:18])
        return (a > b) - (a < b) in _NUMBERS[sign]
    return None


def _is_empty(word: Said, variables: Variables) -> bool | None:
    """A variable that the text never sets counts as unset, as it does in `${NAME:-default}`; `$1` does not."""
    if word.is_known:
        return not word.text
    name = word.text.strip("${}")
    return True if name.isidentifier() and word.names == {name} and name not in variables.values else None
