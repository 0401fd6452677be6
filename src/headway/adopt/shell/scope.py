"""What becomes of variables behind a branch, a call and a `read`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headway.adopt.shell import arithmetic
from headway.adopt.shell.expand import Atom, Value, Variables, expand_body, expand_value, said
from headway.adopt.shell.parser import Simple
from headway.adopt.shell.tokens import Piece, Word

_COUNTED = re.compile(r"\s*([A-Za-z_]\w*)\s*(\+ ?\+|- ?-|\+=|-=|=)\s*(.*)", re.DOTALL)
_MAX_CHOICES = 4
_BEFORE = ("eval", "exec", "nohup", "time", "timeout", "bash", "sh", "srun", "stdbuf", "nice", "command")
"""What may be before a command that is in a variable."""


def _told(name: str, variables: Variables) -> tuple[Value, ...]:
    """Return what a variable may be behind one arm: what earlier branches left open counts too."""
    if name in variables.choices:
        return variables.choices[name]
    value = variables.values.get(name, ())
    return (value,) if value and not any(atom.is_open and atom.text == f"${name}" for atom in value) else ()


def choice_of(words: Sequence[Word], variables: Variables) -> str | None:
    """Return the variable that holds the command itself, where a branch left open which of several it is."""
    for place, word in enumerate(words[:4]):
        pieces = [piece for piece in word.pieces if piece.raw]
        if len(pieces) == 1 and pieces[0].kind == "variable" and not pieces[0].rest:
            return pieces[0].name if _are_commands(variables.choices.get(pieces[0].name, ())) else None
        if (word.plain or "$").rpartition("/")[2] not in _BEFORE and not (
            place and re.match(r"[-\d]", word.plain or "")
        ):
            return None
    return None


def _are_commands(choices: Sequence[Value]) -> bool:
    """Whether every choice starts something; flags that may or may not be there do not."""
    texts = [said(choice).text.strip() for choice in choices]
    return bool(texts) and all(text and not text.startswith("-") for text in texts)


def names_of(word: Word) -> set[str]:
    """Return the variables that are in a word as written."""
    names = {piece.name for piece in word.pieces if piece.kind == "variable"}
    return names.union(*(arithmetic.names_in(piece.rest) for piece in word.pieces if piece.kind == "arithmetic"))


def count(expression: str, variables: Variables) -> None:
    """Follow `(( PORT++ ))` and `let PORT+=1`; a sum that is not known leaves the variable open."""
    match = _COUNTED.fullmatch(expression)
    if match is None:
        return
    name, sign, operand = match[1], match[2], match[3]
    if sign == "=" and operand.startswith("="):
        return
    right = operand if sign in ("=", "+=", "-=") else "1"
    text = right if sign == "=" else f"{name} {sign[0]} ({right})"
    value = said(expand_value(Word((Piece("arithmetic", f"$(({text}))", rest=text),), 1), variables))
    if value.is_known:
        variables.set(name, (Atom(value.text),))
    else:
        make_open(name, variables)


def read_text(words: Sequence[Word], simple: Simple, variables: Variables) -> bool:
    """Follow `read -r -d '' NAME <<EOF`; say whether it was one."""
    bodies = [one for one in simple.redirects if one.body is not None]
    name = words[-1].plain or ""
    if not bodies or not name.isidentifier() or not any(re.fullmatch(r"-\w*d", word.plain or "") for word in words[1:]):
        return False
    body = bodies[-1]
    variables.set(name, expand_body((body.body or "").strip("\n"), variables, is_literal=body.is_literal))
    return True


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
    variables.choices.pop(name, None)
    variables.computed.discard(name)


def _open_array(name: str, arrays: Sequence[tuple[Value, ...]], variables: Variables) -> None:
    """Keep what all begin with: a branch that only adds to an array leaves its beginning known."""
    shortest = min(arrays, key=len)
    make_open(name, variables)
    if shortest and all(array[: len(shortest)] == shortest for array in arrays):
        rest = Atom(f"${{{name}[@]}}", frozenset({name}), is_open=True)
        variables.arrays[name] = (*shortest, (rest,))


def agree(variables: Variables, outcomes: Sequence[Variables]) -> None:
    """Keep what all outcomes agree on; leave the rest open."""
    for name in set().union(*(one.values.keys() for one in outcomes)):
        seen = {one.values.get(name) for one in outcomes}
        if len(seen) == 1 and None not in seen:
            variables.values[name] = outcomes[0].values[name]
        elif len(seen) > 1:
            told = dict.fromkeys(value for one in outcomes for value in _told(name, one))
            make_open(name, variables)
            if 1 < len(told) <= _MAX_CHOICES:
                variables.choices[name] = tuple(told)
    for one in outcomes:
        variables.exported |= one.exported
        variables.computed |= one.computed & variables.values.keys()
    for name in set().union(*(one.arrays.keys() for one in outcomes)):
        arrays = [one.arrays.get(name) for one in outcomes]
        if arrays[0] is not None and all(array == arrays[0] for array in arrays):
            variables.arrays[name] = arrays[0]
        else:
            _open_array(name, [array or () for array in arrays], variables)
