"""Whether a condition holds, where the text alone settles it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from headway.adopt.shell.expand import Said, Variables, expand_value, said
from headway.adopt.shell.parser import Case, Chain, Node, Simple
from headway.adopt.shell.tokens import Piece, Word

_NUMBERS = {"-eq": (0,), "-ne": (-1, 1), "-lt": (-1,), "-le": (-1, 0), "-gt": (1,), "-ge": (0, 1)}


def holds(condition: Sequence[Node], variables: Variables) -> bool | None:
    """Return True or False for a single test over known values, else None."""
    if len(condition) == 1 and isinstance(condition[0], Chain):
        chain = condition[0]
        return both(holds([chain.test], variables), holds([chain.then], variables), chain.sign)
    if len(condition) != 1 or not isinstance(condition[0], Simple):
        return None
    words = [said(expand_value(word, variables)) for word in condition[0].words]
    if words[0].text == "((" and len(words) > 1:
        text = words[1].text
        value = said(expand_value(Word((Piece("arithmetic", text, rest=text),), 1), variables))
        return value.text != "0" if value.is_known else None
    if words[0].text not in ("[", "[[", "test"):
        return None
    words = words[1:-1] if words[0].text != "test" else words[1:]
    if words and any(word.text in ("&&", "||", "-a", "-o") for word in words):
        return None
    is_negated = bool(words) and words[0].text == "!"
    verdict = _test(words[is_negated:], variables)
    return (not verdict) if is_negated and verdict is not None else verdict


def arm_of(case: Case, subject: str, variables: Variables) -> tuple[Node, ...]:
    """Return the body of the first pattern that a known subject fits; none may."""
    for patterns, body in case.arms:
        texts = [said(expand_value(pattern, variables)).text for pattern in patterns]
        if any(fnmatchcase(subject, text) for text in texts):
            return body
    return ()


def has_rest(case: Case) -> bool:
    """Whether a `case` takes everything: its last pattern is `*`."""
    return bool(case.arms) and any(pattern.plain == "*" for pattern in case.arms[-1][0])


def leaves(body: Sequence[Node]) -> bool:
    """Whether a branch ends the script: `usage; exit 1`."""
    return any(isinstance(node, Simple) and node.words[0].plain in ("exit", "return") for node in body)


def both(first: bool | None, second: bool | None, sign: str) -> bool | None:
    """Return what two tests joined by `&&` or `||` say together: either may settle it alone."""
    settles = sign == "||"
    if settles in (first, second):
        return settles
    return None if first is None or second is None else not settles


def _test(words: Sequence[Said], variables: Variables) -> bool | None:
    if len(words) == 2 and words[0].text in ("-z", "-n"):
        is_empty = _is_empty(words[1], variables)
        return None if is_empty is None else is_empty == (words[0].text == "-z")
    if len(words) != 3:
        return None
    left, sign, right = (_not_given(word) for word in words)
    if left is None or sign is None or right is None:
        return None
    if sign in ("=", "==", "!="):
        # What a positional parameter is compared with is one of the ways to call the script: not settled.
        if not (words[0].is_known and words[2].is_known) and left != right:
            return None
        return fnmatchcase(left, right) == (sign != "!=")
    if sign in _NUMBERS and left.strip("-").isdigit() and right.strip("-").isdigit():
        a, b = int(left[:18]), int(right[:18])
        return (a > b) - (a < b) in _NUMBERS[sign]
    return None


_GIVEN = re.compile(r"\$\{?\d\}?")


def _not_given(word: Said) -> str | None:
    """Return a known text; `$1` counts as not given and `$#` as 0, as `${1:-default}` is read too."""
    if word.is_known:
        return word.text
    if word.text in ("$#", "${#}"):
        return "0"
    return "" if _GIVEN.fullmatch(word.text) else None


def _is_empty(word: Said, variables: Variables) -> bool | None:
    """A variable that the text never sets counts as unset, as it does in `${NAME:-default}`."""
    given = _not_given(word)
    if given is not None:
        return not given
    name = word.text.strip("${}")
    return True if name.isidentifier() and word.names == {name} and name not in variables.values else None
