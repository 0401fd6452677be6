"""Variables replaced by what the text gives. What it does not give stays as written and is remembered by name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from headway.adopt.shell import arithmetic
from headway.adopt.shell.lexer import read_words
from headway.adopt.shell.reshape import change
from headway.adopt.shell.tokens import Piece, Word

_MAX_VALUE = 64 * 1024
"""Longest value a variable may grow to (`A=$A$A` in a loop doubles)."""
_MAX_ATOMS = 512
_MAX_DEPTH = 8
_BRACES = re.compile(r"\{(-?\d+)\.\.(-?\d+)\}")
_MAX_RANGE = 64
_PATTERN = re.compile(r"[*?\[]|(?:^|[=:])~|\{[^{}]*(?:,|\.\.)[^{}]*\}")
_IN_WORDS = re.compile(r"(?:your|the path|path to|path of) [\w ./-]+", re.IGNORECASE)
"""A place described in words, `FILE="your config.yaml"`: nobody means several words by it."""
_PARTS = re.compile(r"[ \t\n]+|(?:<[^\s<>][^<>\n]{0,80}>|[^ \t\n])+")
"""Words and what is between them; blanks inside `<…>` belong to the placeholder."""
_SEQUENCE = re.compile(r"\s*seq((?:\s+(?!-[a-z])\S+|\s+\$\(\(.*?\)\)){1,3})\s*")
_DEFAULTED = re.compile(r"\$\{[A-Za-z_]\w*:?-[^{}]*\}")
_CAT = re.compile(r"\s*cat\s+<<-?\s*(['\"]?)(\w+)\1[ \t]*\n(.*?\n|)[ \t]*\2\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Atom:
    """A stretch of text; an open one is an expression whose value the text does not give."""

    text: str
    names: frozenset[str] = frozenset()
    """What would have to be known: variables by name, command substitutions as written."""
    is_open: bool = False


Value = tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """A word after everything known has been replaced."""

    text: str
    names: frozenset[str] = frozenset()
    is_pattern: bool = False
    """A glob, a tilde or braces outside of quotes: the shell makes other words of it."""

    @property
    def is_known(self) -> bool:
        """Whether nothing in it is left open."""
        return not self.names

    def tail(self, start: int) -> Said:
        """Return the rest of the word from a place on."""
        return Said(
            self.text[start:],
            self.names if "$" in self.text[start:] or "`" in self.text[start:] else frozenset(),
            self.is_pattern,
        )


@dataclass(slots=True)
class Variables:
    """What the text has set so far."""

    values: dict[str, Value] = field(default_factory=dict)
    arrays: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    computed: set[str] = field(default_factory=set)
    """Variables whose value is one word with a command substitution in it: they stay under their own name."""
    choices: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    """Variables that a branch left open, with what each of its arms would have set."""
    defaulted: set[str] = field(default_factory=set)
    """Variables that the text does not set and has a default for; of all copies together."""

    def copy(self) -> Variables:
        """Return an independent copy."""
        return Variables(
            dict(self.values),
            dict(self.arrays),
            set(self.exported),
            set(self.computed),
            dict(self.choices),
            self.defaulted,
        )

    def set(self, name: str, value: Value, *, is_added: bool = False) -> None:
        """Set a variable, or add to it."""
        value = (*self.values.get(name, ()), *value) if is_added else value
        if len(value) > _MAX_ATOMS or sum(len(atom.text) for atom in value) > _MAX_VALUE:
            value = (Atom(f"${name}", frozenset({name}), is_open=True),)
        self.values[name] = value
        self.arrays.pop(name, None)
        self.choices.pop(name, None)
        self.computed.discard(name)
        if any(_is_command(atom) for atom in value) and not _holds_words(value):
            self.computed.add(name)

    def forget(self, name: str) -> None:
        """Make a variable unknown, because the text does not say which of several values it has."""
        self.values.pop(name, None)
        self.arrays.pop(name, None)
        self.computed.discard(name)


def _is_command(atom: Atom) -> bool:
    is_sum = atom.text.startswith("$((") and atom.text.endswith("))")
    return atom.is_open and atom.text.startswith(("$(", "`")) and not is_sum


def _holds_words(value: Value) -> bool:
    """Whether a value is a part of a command line rather than one word: `CMD=" $(pwd)/train.py --lr 1"`."""
    return any(
        re.search(r"\S\s+\S", f"{'x' * bool(place)}{atom.text.rstrip()}")
        for place, atom in enumerate(value)
        if not atom.is_open
    )


def said(value: Iterable[Atom]) -> Said:
    """Return a value as one word."""
    atoms = tuple(value)
    return Said("".join(atom.text for atom in atoms), frozenset().union(*(atom.names for atom in atoms)))


def expand_value(word: Word, variables: Variables, depth: int = 0) -> Value:
    """Return a word as one value, without splitting, as in an assignment."""
    atoms: list[Atom] = []
    for piece in word.pieces:
        atoms.extend(_expand_piece(piece, variables, depth))
    return tuple(atoms)


def expand_words(words: Iterable[Word], variables: Variables) -> list[Said]:
    """Return the words of a command: variables replaced, unquoted ones split at blanks."""
    result: list[Said] = []
    for word in words:
        is_pattern = _is_pattern(word)
        result.extend(replace(said(one), is_pattern=is_pattern) for one in _fields(word, variables))
    return result


def _is_pattern(word: Word) -> bool:
    bare = [piece.raw for piece in word.pieces if piece.kind == "text" and not piece.is_quoted]
    return any(_PATTERN.search(text) for text in bare)


def expand_items(words: Iterable[Word], variables: Variables) -> list[Value]:
    """Return the items of a `for`, with `{1..4}` and `{a,b}` spread out."""
    result: list[Value] = []
    for word in words:
        text = word.plain
        spread = _spread(text) if text else _sequence(word, variables)
        result.extend([(Atom(one),) for one in spread] if spread else _fields(word, variables))
    return result


def _sequence(word: Word, variables: Variables) -> list[str] | None:
    """Return the numbers of `$(seq FIRST LAST)`, which is all that the command does."""
    pieces = [piece for piece in word.pieces if piece.raw]
    match = _SEQUENCE.fullmatch(pieces[0].rest) if len(pieces) == 1 and pieces[0].kind == "command" else None
    if match is None:
        return None
    given = [said(one) for one in _expand_all(match[1], variables)]
    if not given or not all(one.is_known and re.fullmatch(r"-?\d{1,6}", one.text) for one in given):
        return None
    numbers = [int(one.text) for one in given]
    first, step, last = (1, 1, numbers[0]) if len(numbers) == 1 else (numbers[0], 1, numbers[-1])
    step = numbers[1] if len(numbers) == 3 else step
    listed = [str(one) for one in range(first, last + (1 if step > 0 else -1), step)] if step else []
    return listed if 0 < len(listed) <= _MAX_RANGE else None


def _expand_all(text: str, variables: Variables) -> list[Value]:
    return [expand_value(token, variables) for token in read_words(text).tokens if isinstance(token, Word)]


def _spread(text: str) -> list[str] | None:
    if match := _BRACES.fullmatch(text):
        first, last = int(match[1]), int(match[2])
        if abs(last - first) < _MAX_RANGE:
            return [str(one) for one in range(first, last + (1 if last >= first else -1), 1 if last >= first else -1)]
    if re.fullmatch(r"\{[^{},]+(?:,[^{},]+)+\}", text):
        return text[1:-1].split(",")
    return None


def _fields(word: Word, variables: Variables) -> list[Value]:
    fields: list[list[Atom]] = []
    current: list[Atom] | None = None
    # `"${A[@]}"` of an empty array is not a word at all, where `""` is an empty one.
    has_list = any(_as_list(piece, variables) is not None for piece in word.pieces)
    for piece in word.pieces:
        listed = _as_list(piece, variables)
        if has_list and piece.kind == "text" and not piece.raw:
            continue
        if listed is not None:
            for place, one in enumerate(listed):
                current = None if place else current
                if piece.is_quoted:
                    if current is None:
                        current = []
                        fields.append(current)
                    current.extend(one)
                    continue
                for atom in one:
                    current = _split(atom, fields, current)
            continue
        for atom in _expand_piece(piece, variables, 0):
            if piece.kind == "text" or piece.is_quoted or atom.is_open:
                if current is None:
                    current = []
                    fields.append(current)
                current.append(atom)
                continue
            current = _split(atom, fields, current)
    return [tuple(one) for one in fields]


def _split(atom: Atom, fields: list[list[Atom]], current: list[Atom] | None) -> list[Atom] | None:
    """Cut an unquoted value at its blanks; return the field that is still open. What is not known stays whole."""
    if atom.is_open or _IN_WORDS.fullmatch(atom.text):
        if current is None:
            current = []
            fields.append(current)
        current.append(atom)
        return current
    for part in _PARTS.findall(atom.text):
        if part.isspace():
            current = None
            continue
        if current is None:
            current = []
            fields.append(current)
        current.append(Atom(part, atom.names))
    return current


def _as_list(piece: Piece, variables: Variables) -> list[Value] | None:
    """Return the elements of `${A[@]}`, the places of `${!A[@]}`, or None for anything else."""
    if piece.kind == "variable" and piece.name == "!" and piece.rest.endswith("[@]"):
        length = _array_length(piece.rest[:-3], variables)
        return None if length is None else [(Atom(str(place)),) for place in range(length)]
    if piece.kind != "variable" or piece.rest not in ("[@]", "[*]") or piece.name not in variables.arrays:
        if piece.kind == "variable" and piece.name in ("@", "*") and not piece.rest and "@" in variables.arrays:
            return list(variables.arrays["@"])
        return None
    return list(variables.arrays[piece.name])


def _open(piece: Piece, names: Iterable[str]) -> Value:
    return (Atom(piece.raw, frozenset(names), is_open=True),)


def _expand_piece(piece: Piece, variables: Variables, depth: int) -> Value:
    if piece.kind == "text":
        return (Atom(piece.raw),)
    if piece.kind == "command":
        return _heredoc(piece, variables) or _open(piece, [piece.raw])
    if piece.kind == "arithmetic":
        return _expand_arithmetic(piece, variables)
    if depth >= _MAX_DEPTH:
        return _open(piece, [piece.name])
    return _expand_variable(piece, variables, depth)


def _heredoc(piece: Piece, variables: Variables) -> Value | None:
    """Return the value of `$(cat <<EOF … )`, which is a text with its variables replaced."""
    match = _CAT.fullmatch(piece.rest)
    return expand_body(match[3].rstrip("\n"), variables, is_literal=bool(match[1])) if match else None


def expand_body(text: str, variables: Variables, *, is_literal: bool = False) -> Value:
    """Return the text of a heredoc; a quoted mark keeps it as it is."""
    if is_literal:
        return (Atom(text),)
    escaped = re.sub(r'(?<!\\)"', r'\\"', text)
    tokens = read_words(f'"{escaped}"').tokens
    word = tokens[0] if len(tokens) == 1 else None
    return expand_value(word, variables) if isinstance(word, Word) else (Atom(text),)


def _expand_arithmetic(piece: Piece, variables: Variables) -> Value:
    counted = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*(\+\+|--)\s*", piece.rest)
    known = _known_text(counted[1], variables) if counted else None
    if counted and known is not None and re.fullmatch(r"\d{1,18}", known):
        # `$((PORT++))` gives the old value and counts.
        variables.set(counted[1], (Atom(str(int(known) + (1 if counted[2] == "++" else -1))),))
        return (Atom(known),)
    numbers: dict[str, int] = {}
    open_names: set[str] = set()
    expression = _fill_defaults(_count_arrays(piece.rest, variables), variables)
    for name in arithmetic.names_in(expression):
        known = _known_text(name, variables)
        if known is not None and re.fullmatch(r"\s*-?\d{1,18}\s*", known):
            numbers[name] = int(known)
        else:
            open_names |= _names_of(name, variables)
    value = None if open_names else arithmetic.evaluate(expression, numbers)
    return (Atom(str(value)),) if value is not None else _open(piece, open_names or {piece.raw})


def _count_arrays(expression: str, variables: Variables) -> str:
    def count(match: re.Match[str]) -> str:
        length = _array_length(match[1], variables)
        return match[0] if length is None else str(length)

    return re.sub(r"\$\{#(\w+)\[[@*]\]\}", count, expression)


def _fill_defaults(expression: str, variables: Variables) -> str:
    """Replace `${NAME:-4}` inside a sum, as anywhere else."""

    def fill(match: re.Match[str]) -> str:
        values = [said(one) for one in _expand_all(match[0], variables)]
        return f"({values[0].text})" if len(values) == 1 and values[0].is_known and values[0].text else match[0]

    return _DEFAULTED.sub(fill, expression)


def _array_length(name: str, variables: Variables) -> int | None:
    """Return how many elements an array has; one that is open may stand for several."""
    array = variables.arrays.get(name)
    if array is None or any(atom.is_open for one in array for atom in one):
        return None
    return len(array)


def _known_text(name: str, variables: Variables) -> str | None:
    value = variables.values.get(name)
    if value is None or name in variables.computed or any(atom.names for atom in value):
        return None
    return "".join(atom.text for atom in value)


def _names_of(name: str, variables: Variables) -> set[str]:
    """Return what is not known about a variable: itself, or what it was made of."""
    value = variables.values.get(name)
    if value is None or name in variables.computed:
        return {name}
    return set().union(*(atom.names for atom in value))


def _expand_variable(piece: Piece, variables: Variables, depth: int) -> Value:
    name, rest = piece.name, piece.rest
    if name.startswith("#") and len(name) > 1:
        return _length(piece, variables)
    if rest.startswith("["):
        return _element(piece, variables)
    if name in variables.computed:
        # A default cannot help here: the variable is set, only to what is not known.
        return _open(piece, [name])
    value = variables.values.get(name)
    if not rest:
        return _open(piece, [name]) if value is None else value
    if rest[:2] in (":-", ":=", ":+", ":?") or rest[:1] in "-=+?":
        return _default(piece, value, variables, depth)
    known = _known_text(name, variables)
    changed = change(known, rest) if known is not None else None
    return (Atom(changed),) if changed is not None else _open(piece, _names_of(name, variables))


def _default(piece: Piece, value: Value | None, variables: Variables, depth: int) -> Value:
    colon = piece.rest.startswith(":")
    sign, operand = piece.rest[colon], piece.rest[1 + colon :]
    is_empty = value is None or (colon and not any(atom.text for atom in value))
    if value is None and sign in "-=+":
        variables.defaulted.add(piece.name)
    if sign == "+":
        return () if is_empty else _operand(operand, variables, depth)
    if not is_empty:
        assert value is not None, "an absent value is empty"
        return value
    if sign == "?":
        return _open(piece, [piece.name])
    value = _operand(operand, variables, depth)
    if sign == "=":
        variables.set(piece.name, value)
    return value


def _operand(text: str, variables: Variables, depth: int) -> Value:
    """Return what follows `:-`: a text in which variables may be again."""
    tokens = read_words(text).tokens
    atoms: list[Atom] = []
    for place, token in enumerate(tokens):
        if not isinstance(token, Word):
            return (Atom(text),)
        atoms += [Atom(" ")] if place else []
        atoms.extend(expand_value(token, variables, depth + 1))
    return tuple(atoms)


def _length(piece: Piece, variables: Variables) -> Value:
    name = piece.name[1:]
    if piece.rest in ("[@]", "[*]"):
        length = _array_length(name, variables)
        return _open(piece, [name]) if length is None else (Atom(str(length)),)
    known = _known_text(name, variables)
    return _open(piece, _names_of(name, variables)) if known is None else (Atom(str(len(known))),)


def _element(piece: Piece, variables: Variables) -> Value:
    array = variables.arrays.get(piece.name)
    place = piece.rest[1:-1]
    if array is not None and place in ("@", "*"):
        return tuple(atom for number, one in enumerate(array) for atom in ((Atom(" "),) if number else ()) + one)
    if array is not None and place != "0" and _array_length(piece.name, variables) is None:
        return _open(piece, [piece.name])
    if array is not None and place.isdigit() and int(place[:9]) < len(array):
        return array[int(place[:9])]
    if array is not None and (known := _known_text(place.strip("${}"), variables)) and known.isdigit():
        return array[int(known[:9])] if int(known[:9]) < len(array) else ()
    return _open(piece, [piece.name])
