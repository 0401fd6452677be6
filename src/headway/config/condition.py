"""Conditions on a run's numbers, `val.bpb > 1.2 and step > 1000`: read once, then asked again and again.

Python's own parser reads them, and only what is listed here is taken from it: numbers, names, `+ - * /`, comparisons,
`and`, `or`, `not`. Nothing is called and nothing is looked up but a table of numbers.
"""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

NAMES: Final = ("step", "samples", "loss", "lr", "grad_norm", "dt", "mem")
"""Numbers of a step; what a validation measures is `val.NAME`."""
_LONGEST: Final = 300
_LARGEST: Final = 1e300
_MATHS: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARES: Final[Mapping[type, Callable[[Any, Any], bool]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class ConditionError(ValueError):
    """A condition that cannot be read; `code` and `facts` say why."""

    def __init__(self, code: str, **facts: object) -> None:
        super().__init__(code)
        self.code, self.facts = code, facts


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was read."""

    text: str
    names: tuple[str, ...]
    """What it asks for, each once."""
    _tree: ast.expr

    def holds(self, values: Mapping[str, float]) -> bool | None:
        """Say whether it is so; None: a number it asks for is not known yet."""
        if not all(name in values for name in self.names):
            return None
        try:
            return bool(_value(self._tree, values))
        except (ArithmeticError, ValueError):
            return None


def read_condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        ConditionError: it is not one.
    """
    if len(text) > _LONGEST:
        raise ConditionError("alert/condition-long", most=_LONGEST)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
        why = err.msg if isinstance(err, SyntaxError) else type(err).__name__
        raise ConditionError("alert/condition-syntax", text=text, why=why) from err
    names: dict[str, None] = {}
    _check(tree, text, names, wants_truth=True)
    if not names:
        raise ConditionError("alert/condition-constant", text=text)
    return Condition(text.strip(), tuple(names), tree)


def _check(node: ast.expr, text: str, names: dict[str, None], *, wants_truth: bool) -> None:
    """Refuse all that is not listed, and a number where a yes or no belongs."""
    match node:
        case ast.BoolOp(values=parts) if wants_truth:
            for part in parts:
                _check(part, text, names, wants_truth=True)
        case ast.UnaryOp(op=ast.Not(), operand=part) if wants_truth:
            _check(part, text, names, wants_truth=True)
        case ast.Compare(left=left, ops=ops, comparators=rest) if wants_truth and all(
            type(op) in _COMPARES for op in ops
        ):
            for part in (left, *rest):
                _check(part, text, names, wants_truth=False)
        case ast.BinOp(left=left, op=op, right=right) if not wants_truth and type(op) in _MATHS:
            _check(left, text, names, wants_truth=False)
            _check(right, text, names, wants_truth=False)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=part) if not wants_truth:
            _check(part, text, names, wants_truth=False)
        case ast.Constant(value=int() | float() as value) if not wants_truth and type(value) is not bool:
            if not abs(value) < _LARGEST:
                raise ConditionError("alert/condition-part", part=str(value)[:40], text=text)
        case ast.Name() | ast.Attribute() if not wants_truth:
            names[_name(node, text)] = None
        case _:
            shown = ast.get_source_segment(text.strip(), node) or text
            raise ConditionError("alert/condition-part", part=shown, text=text)


def _name(node: ast.expr, text: str) -> str:
    """Return `loss` or `val.NAME`."""
    parts: list[str] = []
    place = node
    while isinstance(place, ast.Attribute):
        parts.append(place.attr)
        place = place.value
    name = ".".join([place.id, *reversed(parts)]) if isinstance(place, ast.Name) else ast.unparse(node)
    if name in NAMES or (name.startswith("val.") and isinstance(place, ast.Name)):
        return name
    near = difflib.get_close_matches(name, NAMES, n=1)
    known = ", ".join((*NAMES, "val.NAME"))
    raise ConditionError("alert/condition-name", name=name, near=near[0] if near else f"val.{name}", known=known)


def _value(node: ast.expr, values: Mapping[str, float]) -> Any:
    """Return a number, or a yes or no; the tree was checked."""
    match node:
        case ast.BoolOp(op=op, values=parts):
            found = (bool(_value(part, values)) for part in parts)
            return all(found) if isinstance(op, ast.And) else any(found)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return not _value(part, values)
        case ast.UnaryOp(op=op, operand=part):
            return -_value(part, values) if isinstance(op, ast.USub) else _value(part, values)
        case ast.Compare(left=left, ops=ops, comparators=rest):
            numbers = [_value(part, values) for part in (left, *rest)]
            return all(_COMPARES[type(op)](numbers[at], numbers[at + 1]) for at, op in enumerate(ops))
        case ast.BinOp(left=left, op=op, right=right):
            return _MATHS[type(op)](_value(left, values), _value(right, values))
        case ast.Constant(value=int() | float() as value):
            return float(value)
    return values[_name(node, "")]
