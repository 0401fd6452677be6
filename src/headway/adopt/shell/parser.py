"""Words and operators into commands: lists, loops, branches, functions. What does not parse is skipped, not fatal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from headway.adopt.shell.tokens import Operator, Piece, Token, Word

_MAX_DEPTH = 30
_MAX_CHAIN = 40
_MAX_COUNT = 64
_COUNTED = re.compile(r"\(\s*\(\s*(\w+)\s*=\s*(\S+)\s*;\s*\1\s*(<\s*=?)\s*(\S+)\s*;\s*\1\s*\+\s*\+")
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
    """`case`: its subject, and the patterns with their bodies in order."""

    subject: Word | None
    arms: tuple[tuple[tuple[Word, ...], tuple[Node, ...]], ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """`[ … ] && NODE`, `[ … ] || NODE`: the second part depends on a test."""

    test: Node
    sign: str
    then: Node


@dataclass(frozen=True, slots=True)
class Function:
    """A function that may be called later."""

    name: str
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Subshell:
    """`( … )`: its variables do not come back."""

    body: tuple[Node, ...]


Node = Simple | Loop | Branch | Case | Chain | Function | Subshell


_TESTS = frozenset({"[", "[[", "test", "(("})


def is_test(node: Node) -> bool:
    """Return whether a command is a test, or tests joined by `&&` and `||`."""
    return isinstance(node, Chain) or (isinstance(node, Simple) and node.words[0].plain in _TESTS)


def parse(tokens: Sequence[Token]) -> tuple[Node, ...]:
    """Return the commands of a text in order."""
    parser = _Parser(tokens)
    nodes: list[Node] = []
    while parser.at < len(tokens):
        nodes.extend(parser.read_list(depth=0))
        # A closing word or bracket without its opening: step over it.
        parser.at += 1
    return tuple(nodes)


def _written(token: Token) -> str:
    if isinstance(token, Operator):
        return f"{token.sign} {_written(token.target) if token.target is not None else ''}"
    return "".join(piece.raw for piece in token.pieces)


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
                    test = self._read_arithmetic_test()
                    if test is not None:
                        nodes.append(test)
                        self._read_chain(nodes, depth, stop)
                        continue
                    self.at += 1
                    nodes.append(Subshell(tuple(self.read_list(depth=depth + 1))))
                self.at += 1
                continue
            word = self._keyword()
            if word in stop and depth > 0:
                break
            self._read_node(nodes, word, depth)
            self._read_chain(nodes, depth, stop)
        return nodes

    def _read_node(self, nodes: list[Node], word: str | None, depth: int) -> None:
        node = self._read_compound(word, depth) if word else None
        if node is None:
            self._read_simple(nodes)
        else:
            nodes.append(node)

    def _read_chain(self, nodes: list[Node], depth: int, stop: frozenset[str]) -> None:
        """Tie what follows `&&` or `||` to the test before it."""
        for _ in range(_MAX_CHAIN):
            if not (nodes and is_test(nodes[-1]) and (self._is_sign("&&") or self._is_sign("||"))):
                return
            sign = "&&" if self._is_sign("&&") else "||"
            self.at += 1
            while self._is_sign("\n"):
                self.at += 1
            word = self._keyword()
            then: list[Node] = []
            if self._is_sign("("):
                test = self._read_arithmetic_test()
                then = [test] if test is not None else []
            elif self.at < len(self.tokens) and not (word in stop and depth > 0):
                self._read_node(then, word, depth)
            if not then:
                return
            nodes[-1] = Chain(nodes[-1], sign, then[0])

    def _read_arithmetic_test(self) -> Simple | None:
        """Take `(( … ))` as one command, so that its `<` and `>` are not redirects."""
        line = self.tokens[self.at].line
        if not (self.at + 1 < len(self.tokens) and self._is_sign("(")):
            return None
        after = self.tokens[self.at + 1]
        if not (isinstance(after, Operator) and after.sign == "("):
            return None
        depth, at = 0, self.at
        while at < len(self.tokens):
            token = self.tokens[at]
            sign = token.sign if isinstance(token, Operator) and not token.is_redirect else ""
            depth += (sign == "(") - (sign == ")")
            at += 1
            if depth == 0:
                break
            if sign == "\n":
                return None
        if depth:
            return None
        inside = " ".join(_written(token) for token in self.tokens[self.at + 2 : at - 2])
        self.at = at
        return Simple((Word((Piece("text", "(("),), line), Word((Piece("text", inside),), line)), ())

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
            began = self.at + 1
            while self.at < len(self.tokens) and self._keyword() != "do":
                self.at += 1
            return self._count_loop(began, depth)
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

    def _count_loop(self, began: int, depth: int) -> Node:
        """Read `for ((i=0; i<4; i++))`; where the bounds are not plain numbers, how often is not worked out."""
        line = self.tokens[began].line
        match = _COUNTED.match(" ".join(_written(token) for token in self.tokens[began : self.at]))
        if match is None:
            return Loop(None, None, tuple(self._read_body(depth)))
        first, last = match[2], match[4]
        items: tuple[Word, ...] | None = None
        if first.isdigit() and last.isdigit() and int(last) - int(first) <= _MAX_COUNT:
            numbers = range(int(first), int(last) + ("=" in match[3]))
            items = tuple(Word((Piece("text", str(one)),), line) for one in numbers)
        elif first.isdigit():
            # As `seq` would count it, where the bound is known.
            text = f"seq {first} $(( {last} - {int('=' not in match[3])} ))"
            items = (Word((Piece("command", f"$({text})", rest=text),), line),)
        return Loop(match[1], items, tuple(self._read_body(depth)))

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
        after = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None
        subject = after if isinstance(after, Word) else None
        while self.at < len(self.tokens) and self._keyword() != "in":
            self.at += 1
        self.at += 1
        arms: list[tuple[tuple[Word, ...], tuple[Node, ...]]] = []
        while self.at < len(self.tokens) and self._keyword() != "esac":
            patterns: list[Word] = []
            while self.at < len(self.tokens) and not self._is_sign(")") and self._keyword() != "esac":
                token = self.tokens[self.at]
                patterns += [token] if isinstance(token, Word) else []
                self.at += 1
            if self._is_sign(")"):
                self.at += 1
                arms.append((tuple(patterns), tuple(self.read_list(depth=depth + 1, stop=frozenset({"esac"})))))
            if self._keyword() != "esac":
                self.at += 1
        self.at += 1
        return Case(subject, tuple(arms))

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
