"""What becomes of variables behind a branch, a call and a `read`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headway.adopt.expand import Atom, Variables, expand_value, said
from headway.adopt.syntax import Simple
from headway.adopt.tokens import Word


def read_array(words: Sequence[Word], simple: Simple, inner: Variables, variables: Variables) -> bool:
    """Follow `IFS=, read -ra NAME <<< "$LIST"`; say whether it was one whose list is known."""
    given = [one.target for one in simple.redirects if one.sign == "<<<" and one.target]
    name = words[-1].plain or ""
    if not given or not name.isidentifier() or not any(re.fullmatch(r"-r?a", word.plain or "") for word in words[1:]):
        return False
    text, marks = said(expand_value(given[0], variables)), said(inner.values.get("IFS", (Atom(" \t\n"),)))
    if not text.is_known or not marks.is_known:
        return False
    parts = [part for part in re.split(f"[{re.escape(marks.text)}]", text.text) if part] if marks.text else [text.text]
    variables.arrays[name] = tuple((Atom(part),) for part in parts)
    return True


def bring_back(inner: Variables, variables: Variables, lent: Sequence[str]) -> None:
    """Keep what a function has set; its own `$1` and what was set for the call alone end with it."""
    for name, value in inner.values.items():
        if not name.isdigit() and name not in lent:
            variables.values[name] = value
    variables.exported |= inner.exported
    variables.computed |= inner.computed & variables.values.keys()
    variables.arrays.update({name: array for name, array in inner.arrays.items() if name != "@"})


def make_open(name: str, variables: Variables) -> None:
    """Leave a variable under its own name."""
    variables.values[name] = (Atom(f"${name}", frozenset({name}), is_open=True),)
    variables.arrays.pop(name, None)
    variables.computed.discard(name)


def agree(variables: Variables, outcomes: Sequence[Variables]) -> None:
    """Keep what all outcomes agree on; leave the rest open."""
    for name in set().union(*(one.values.keys() for one in outcomes)):
        seen = {one.values.get(name) for one in outcomes}
        if len(seen) == 1 and None not in seen:
            variables.values[name] = outcomes[0].values[name]
        elif len(seen) > 1:
            make_open(name, variables)
    for one in outcomes:
        variables.exported |= one.exported
        variables.computed |= one.computed & variables.values.keys()
        for name, array in one.arrays.items():
            variables.arrays.setdefault(name, array)
