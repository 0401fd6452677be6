"""Words and operators into commands: lists, loops, branches, functions. What does not parse is skipped, not fatal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.adopt.tokens import Operator, Token, Word

_MAX_DEPTH = 30
_CLOSERS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})


@dataclass(frozen=True, slots=True)
class Simple:
    """One command with its redirects."""

    words: tuple[Word, ...]
    redirects: tuple[Operator, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """`for NAME in ITEMS`, or a `while` with neither."""

    name: str | None
    items: tuple[Word, ...] | None
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """`if`: conditions with what they guard, in order; the last may have no condition."""

    arms: tuple[tuple[tuple[Node, ...], tuple[Node, ...]], ...]
    """An `else` has an empty condition."""


@dataclass(frozen=True, slots=True)
class Case:
    """`case`: the bodies of its patterns."""

    bodies: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Function:
    """A function that may be called later."""

    name: str
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Subshell:
    """`( … )`: its variables do not come back."""

    body: tuple[Node, ...]


Node = Simple | Loop | Branch | Case | Function | Subshell


def parse(tokens: Sequence[Token]) -> tuple[Node, ...]:
    """Return the commands of a text in order."""
    parser = _Parser(tokens)
    nodes: list[Node] = []
    while parser.at < len(tokens):
        nodes.extend(parser.read_list(depth=0))
        # A closing word or bracket without its opening: step over it.
        parser.at += 1
    return tuple(nodes)


class _Parser:
    """Recursive descent over the tokens; every loop moves the place forward."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens, self.at = tokens, 0

    def read_list(self, *, depth: int, stop: frozenset[str] = _CLOSERS) -> list[Node]:
        """Read commands up to a closing word or bracket, which stays."""
        nodes: list[Node] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if isinstance(token, Operator) and not token.is_redirect:
                if token.sign in (")", ";;", ";&", ";;&"):
                    break
                if token.sign == "(" and depth < _MAX_DEPTH:
                    self.at += 1
                    nodes.append(Subshell(tuple(self.read_list(depth=depth + 1))))
                self.at += 1
                continue
            word = self._keyword()
            if word in stop and depth > 0:
                break
            node = self._read_compound(word, depth) if word else None
            if node is None:
                self._read_simple(nodes)
            else:
                nodes.append(node)
        return nodes

    def _keyword(self) -> str | None:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        return token.plain if isinstance(token, Word) else None

    def _read_simple(self, nodes: list[Node]) -> None:
        words: list[Word] = []
        redirects: list[Operator] = []
        began = self.at
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if isinstance(token, Operator):
                if not token.is_redirect:
                    break
                redirects.append(token)
            else:
                words.append(token)
            self.at += 1
        if self.at == began:
            self.at += 1
        # `!` and `time -p` of a pipeline say nothing about what is started.
        while words and words[0].plain == "!":
            words.pop(0)
        if words:
            nodes.append(Simple(tuple(words), tuple(redirects)))

    def _read_compound(self, word: str, depth: int) -> Node | None:
        if depth >= _MAX_DEPTH:
            return None
        if word in ("for", "select"):
            return self._read_for(depth)
        if word in ("while", "until"):
            self.at += 1
            condition = self.read_list(depth=depth + 1)
            return Loop(None, None, (*condition, *self._read_body(depth)))
        if word == "if":
            return self._read_if(depth)
        if word == "case":
            return self._read_case(depth)
        if word == "{":
            self.at += 1
            body = self.read_list(depth=depth + 1, stop=frozenset({"}"}))
            self.at += 1
            return Loop(None, None, tuple(body))
        return self._read_function(word, depth)

    def _read_for(self, depth: int) -> Node | None:
        name = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None
        if isinstance(name, Operator) and name.sign == "(":
            # `for ((i=0; i<4; i++))`: how often is not worked out, the body is read once.
            while self.at < len(self.tokens) and self._keyword() != "do":
                self.at += 1
            return Loop(None, None, tuple(self._read_body(depth)))
        if not isinstance(name, Word) or name.plain is None:
            return None
        self.at += 2
        items: list[Word] = []
        has_items = self._keyword() == "in"
        self.at += has_items
        while has_items and self.at < len(self.tokens):
            token = self.tokens[self.at]
            if isinstance(token, Operator):
                break
            items.append(token)
            self.at += 1
        return Loop(name.plain, tuple(items) if has_items else None, tuple(self._read_body(depth)))

    def _read_body(self, depth: int) -> list[Node]:
        """Read `do … done`; without `do` there is no body."""
        while self.at < len(self.tokens) and isinstance(self.tokens[self.at], Operator):
            self.at += 1
        if self._keyword() != "do":
            return []
        self.at += 1
        body = self.read_list(depth=depth + 1)
        self.at += self._keyword() == "done"
        return body

    def _read_if(self, depth: int) -> Node:
        arms: list[tuple[tuple[Node, ...], tuple[Node, ...]]] = []
        while self._keyword() in ("if", "elif"):
            self.at += 1
            condition = self.read_list(depth=depth + 1)
            self.at += self._keyword() == "then"
            arms.append((tuple(condition), tuple(self.read_list(depth=depth + 1))))
        if self._keyword() == "else":
            self.at += 1
            arms.append(((), tuple(self.read_list(depth=depth + 1))))
        self.at += self._keyword() == "fi"
        return Branch(tuple(arms))

    def _read_case(self, depth: int) -> Node:
        while self.at < len(self.tokens) and self._keyword() != "in":
            self.at += 1
        self.at += 1
        bodies: list[tuple[Node, ...]] = []
        while self.at < len(self.tokens) and self._keyword() != "esac":
            while self.at < len(self.tokens) and not self._is_sign(")") and self._keyword() != "esac":
                self.at += 1
            if self._is_sign(")"):
                self.at += 1
                bodies.append(tuple(self.read_list(depth=depth + 1, stop=frozenset({"esac"}))))
            if self._keyword() != "esac":
                self.at += 1
        self.at += 1
        return Case(tuple(bodies))

    def _is_sign(self, sign: str) -> bool:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        return isinstance(token, Operator) and token.sign == sign

    def _read_function(self, word: str, depth: int) -> Node | None:
        at = self.at
        name: str | None = word
        if word == "function":
            self.at += 1
            name = self._keyword()
        self.at += 1
        has_brackets = self._is_sign("(") and self.at + 1 < len(self.tokens)
        if has_brackets:
            self.at += 1
            has_brackets = self._is_sign(")")
            self.at += has_brackets
        while self.at < len(self.tokens) and self._is_sign("\n"):
            self.at += 1
        if name and (has_brackets or word == "function") and self._keyword() == "{":
            self.at += 1
            body = self.read_list(depth=depth + 1, stop=frozenset({"}"}))
            self.at += 1
            return Function(name, tuple(body))
        self.at = at
        return None
