"""Variables as the text sets them: plainly, by `export`, by `read`, by counting. Settings are noted for the linter."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headway.adopt.record import Setting
from headway.adopt.shell.assignment import join_spaced, split_assignment, value_of
from headway.adopt.shell.expand import Atom, Said, Value, Variables, expand_value, expand_words, said
from headway.adopt.shell.scope import count, make_open, names_of
from headway.adopt.shell.tokens import Slip, Word

_MAX_SUBSTITUTED = 32
_DECLARE = ("declare", "typeset", "local", "readonly")
_READS = ("read", "mapfile", "readarray")
_SETTERS = frozenset({"export", "setenv", "set", "SET", "unset", "((", "let", *_READS, *_DECLARE})


class Setter:
    """What a text has set so far, in order, and what was in `NAME=$( … )`."""

    def __init__(self, settings: list[Setting], slips: list[Slip], used: set[str]) -> None:
        self.settings = settings
        self.slips = slips
        self.used = used
        self.substituted: list[str] = []

    def run(self, words: Sequence[Word], variables: Variables) -> bool:
        """Run a builtin that sets or forgets variables; return whether it was one."""
        name = words[0].plain
        if name not in _SETTERS:
            return self._run_spaced(words, variables)
        if name == "export" or name in _DECLARE:
            self.declare(words, variables, is_exported=name == "export")
        elif name == "setenv" and len(words) == 3 and words[1].plain:
            self.assign(words[1].plain, words[2], variables, is_exported=True, is_whole=True)
        elif name in ("set", "SET") and len(words) > 1 and split_assignment(words[1]):
            # A Windows line; in bash it would set `$1`.
            self.declare(words, variables, is_exported=True)
        elif name == "unset":
            for word in words[1:]:
                variables.forget(word.plain or "")
                variables.exported.discard(word.plain or "")
        elif name in _READS:
            for word in words[1:]:
                if word.plain and word.plain.isidentifier():
                    make_open(word.plain, variables)
        elif name in ("((", "let"):
            for word in words[1:]:
                count(said(expand_value(word, variables)).text, variables)
        else:
            return False
        return True

    def _run_spaced(self, words: Sequence[Word], variables: Variables) -> bool:
        """Read `NAME = value` on a line of its own as meant; with small letters it may be another language."""
        is_spaced = (
            len(words) == 3 and words[1].plain == "=" and re.fullmatch(r"[A-Z_][A-Z0-9_]*", words[0].plain or "")
        )
        if is_spaced:
            self._assign_all(words, variables, is_exported=False)
        return bool(is_spaced)

    def declare(self, words: Sequence[Word], variables: Variables, *, is_exported: bool) -> None:
        """Run `export` and its kin; the first word is the builtin's own."""
        self._assign_all(words[1:], variables, is_exported=is_exported)

    def _assign_all(self, words: Sequence[Word], variables: Variables, *, is_exported: bool) -> None:
        joined = join_spaced(words)
        if len(joined) != len(words):
            self.slips.append(Slip("adopt/slip-spaced-equals", words[0].line))
        for word in joined:
            assigned = split_assignment(word)
            plain = word.plain or ""
            if assigned is not None:
                self.assign(assigned[0], word, variables, is_added=assigned[1], is_exported=is_exported)
            elif plain.startswith("-"):
                is_exported = is_exported or "x" in plain
            elif is_exported and plain.isidentifier():
                variables.exported.add(plain)
                if plain in variables.values:
                    self.note(plain, said(variables.values[plain]), word.line, is_exported=True)

    def assign(
        self,
        name: str,
        word: Word,
        variables: Variables,
        *,
        is_added: bool = False,
        is_exported: bool = False,
        is_whole: bool = False,
    ) -> None:
        """Set one variable; `is_whole`: the word is the value alone, without `NAME=`."""
        self.used |= names_of(word) - {name}
        if is_exported:
            variables.exported.add(name)
        if word.array is not None:
            items: tuple[Value, ...] = tuple(
                (Atom(one.text, one.names, is_open=bool(one.names)),) for one in expand_words(word.array, variables)
            )
            variables.arrays[name] = (*variables.arrays.get(name, ()), *items) if is_added else items
            return
        self.substituted += [piece.rest for piece in word.pieces if piece.kind == "command"][:_MAX_SUBSTITUTED]
        value = expand_value(word if is_whole else value_of(word), variables)
        variables.set(name, value, is_added=is_added)
        self.note(name, said(variables.values[name]), word.line, is_exported=name in variables.exported)

    def note(self, name: str, value: Said, line: int, *, is_exported: bool) -> None:
        """Keep a setting for the linter."""
        self.settings.append(Setting(name, value.text, line, is_exported, value.is_known))
