"""`.py` files of plain assignments: parsed, never executed. What they may say is listed here, the rest is refused.

A name may be assigned once, as a key may be once in any other format. Names that begin with an underscore are the
file's own helpers and no keys.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable
from typing import Final

from headway.config.tree import MAX_DEPTH, Entry, Node, TreeBuilder

_OPERATIONS: Final[dict[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_MOST_BITS: Final = 256
"""Whole numbers past this are refused before they are worked out."""


def read_py(text: str, builder: TreeBuilder) -> Node:
    """Return the file's names and values as a table."""
    lines = [line.encode() for line in re.split(r"\r\n|\n|\r", text)]
    try:
        with warnings.catch_warnings():
            # A warning about the file's text (`"\d"`) would appear under Headway's own name.
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        spot = builder.place(error.lineno or 1, error.offset or 1)
        if "Exceeds the limit" in error.msg:  # digits of one number
            builder.problems.stop(spot, "config/number-too-large")
        builder.problems.stop(spot, "config/py-syntax", why=error.msg)
    except (RecursionError, MemoryError):  # how CPython's parser says that it is too deep
        builder.problems.stop(builder.place(1, 1), "config/too-deep", limit=MAX_DEPTH)
    return _Reader(lines, builder).read(tree)


class _Reader:
    """Walks the statements, keeping the values of names for the lines below."""

    def __init__(self, lines: list[bytes], builder: TreeBuilder) -> None:
        self._lines = lines
        self._builder = builder
        self._table: dict[str, Entry] = {}
        self._helpers: dict[str, Entry] = {}

    def read(self, tree: ast.Module) -> Node:
        for statement in tree.body:
            self._builder.count((statement.lineno, 1))
            if isinstance(statement, ast.Expr) and _is_text(statement.value):
                continue
            if isinstance(statement, ast.Assign):
                self._assign(statement.targets, statement.value)
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self._assign([statement.target], statement.value)
            else:
                self._refuse(statement)
        return Node(self._table, 1, 1)

    def _assign(self, targets: list[ast.expr], value: ast.expr) -> None:
        node = self._value(value, 0)
        for target in targets:
            if not isinstance(target, ast.Name):
                self._refuse(target)
                continue
            table = self._helpers if target.id.startswith("_") else self._table
            self._builder.put(table, target.id, self._spot(target), node)

    def _value(self, tree: ast.expr, depth: int) -> Node:
        spot = self._spot(tree)
        self._builder.check_depth(spot, depth)
        match tree:
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                return self._builder.scalar(value, spot)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                self._builder.count(spot)
                return Node([self._value(item, depth + 1) for item in items], *spot)
            case ast.Dict():
                return self._dict(tree, depth)
            case ast.Name(id=name):
                return self._name(name, spot)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
                return self._sign(tree.op, self._value(inner, depth + 1), spot)
            case ast.BinOp():
                return self._arithmetic(tree, depth)
        return self._refuse(tree)

    def _dict(self, tree: ast.Dict, depth: int) -> Node:
        spot, table = self._spot(tree), dict[str, Entry]()
        self._builder.count(spot)
        for key, item in zip(tree.keys, tree.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                self._builder.add(self._spot(key or item), "config/key-not-text")
                continue
            self._builder.put(table, key.value, self._spot(key), self._value(item, depth + 1))
        return Node(table, *spot)

    def _name(self, name: str, spot: tuple[int, int]) -> Node:
        entry = self._table.get(name) or self._helpers.get(name)
        if entry is None:
            return self._builder.refuse(spot, "config/py-no-name", name=name[:60])
        if isinstance(entry.node.value, list | dict):
            # Only single values: names of names of lists would grow as an alias bomb does.
            return self._builder.refuse(spot, "config/py-name-not-simple", name=name[:60])
        if entry.node.is_broken:
            return Node(None, *spot, is_broken=True)
        return self._builder.scalar(entry.node.value, spot)

    def _sign(self, sign: ast.unaryop, inner: Node, spot: tuple[int, int]) -> Node:
        if inner.has_broken():
            return Node(None, *spot, is_broken=True)
        number = _number(inner)
        if number is None:
            return self._builder.refuse(spot, "config/py-not-a-number")
        return self._builder.scalar(-number if isinstance(sign, ast.USub) else number, spot)

    def _arithmetic(self, tree: ast.BinOp, depth: int) -> Node:
        spot = self._spot(tree)
        left, right = self._value(tree.left, depth + 1), self._value(tree.right, depth + 1)
        if left.has_broken() or right.has_broken():
            return Node(None, *spot, is_broken=True)
        a, b, work = _number(left), _number(right), _OPERATIONS.get(type(tree.op))
        if work is None:
            return self._refuse(tree)
        if a is None or b is None:
            return self._builder.refuse(spot, "config/py-not-a-number")
        if isinstance(tree.op, ast.Pow) and _is_huge_power(a, b):
            return self._builder.refuse(spot, "config/number-too-large")
        try:
            result = work(a, b)
        except ZeroDivisionError:
            return self._builder.refuse(spot, "config/py-zero-division")
        except OverflowError:
            return self._builder.refuse(spot, "config/number-too-large")
        if isinstance(result, complex):
            return self._builder.refuse(spot, "config/py-not-a-number")
        return self._builder.scalar(result, spot)

    def _refuse(self, tree: ast.AST) -> Node:
        return self._builder.refuse(self._spot(tree), "config/py-not-plain", what=_name_of(tree))

    def _spot(self, tree: ast.AST) -> tuple[int, int]:
        line, offset = getattr(tree, "lineno", 1), getattr(tree, "col_offset", 0)
        return line, len(self._lines[line - 1][:offset].decode("utf-8", "replace")) + 1


def _is_text(tree: ast.expr) -> bool:
    return isinstance(tree, ast.Constant) and isinstance(tree.value, str)


def _name_of(tree: ast.AST) -> str:
    """Return Python's own word for it: Import, Call, LShift, complex."""
    if isinstance(tree, ast.Expr):
        return _name_of(tree.value)
    if isinstance(tree, ast.Constant):
        return type(tree.value).__name__
    return type(tree.op).__name__ if isinstance(tree, ast.BinOp | ast.UnaryOp) else type(tree).__name__


def _number(node: Node) -> int | float | None:
    return node.value if isinstance(node.value, int | float) and not isinstance(node.value, bool) else None


def _is_huge_power(base: float, exponent: float) -> bool:
    if not (isinstance(base, int) and isinstance(exponent, int)) or exponent < 0:
        return False
    return base.bit_length() * exponent > _MOST_BITS
