"""Whole-number arithmetic of `$((…))`: a small parser of its own, so that nothing is ever evaluated as code."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"\s*(?:(\d+)|\$?\{?([A-Za-z_]\w*)\}?|(<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%()<>?:]))")
_LEVELS = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))
_MAX_TOKENS = 200
_MAX_NUMBER = 1 << 62


def names_in(expression: str) -> set[str]:
    """Return the variables an expression uses."""
    return {match[2] for match in _TOKEN.finditer(expression) if match[2]}


def evaluate(expression: str, values: Mapping[str, int]) -> int | None:
    """Return the value of an expression, or None where it is not plain arithmetic over known numbers."""
    expression = expression.replace("$((", "((")  # arithmetic inside arithmetic is only a bracket more
    tokens: list[str] = []
    at = 0
    while at < len(expression.rstrip()):
        match = _TOKEN.match(expression, at)
        if match is None or len(tokens) > _MAX_TOKENS:
            return None
        tokens.append(match[1] or match[2] or match[3])
        at = match.end()
    try:
        value, rest = _choice(tokens, 0, values)
    except (LookupError, ValueError, ZeroDivisionError, RecursionError):
        return None
    return value if rest == len(tokens) and abs(value) < _MAX_NUMBER else None


def _choice(tokens: list[str], at: int, values: Mapping[str, int]) -> tuple[int, int]:
    """Read `a ? b : c`, or a value without one."""
    value, at = _level(tokens, at, 0, values)
    if at >= len(tokens) or tokens[at] != "?":
        return value, at
    yes, at = _choice(tokens, at + 1, values)
    if tokens[at] != ":":
        raise ValueError(tokens[at])
    no, at = _choice(tokens, at + 1, values)
    return (yes if value else no), at


def _level(tokens: list[str], at: int, level: int, values: Mapping[str, int]) -> tuple[int, int]:
    if level == len(_LEVELS):
        return _unit(tokens, at, values)
    left, at = _level(tokens, at, level + 1, values)
    while at < len(tokens) and tokens[at] in _LEVELS[level]:
        sign = tokens[at]
        right, at = _level(tokens, at + 1, level + 1, values)
        left = _apply(sign, left, right)
    return left, at


def _unit(tokens: list[str], at: int, values: Mapping[str, int]) -> tuple[int, int]:
    token = tokens[at]
    if token == "(":
        value, at = _choice(tokens, at + 1, values)
        if tokens[at] != ")":
            raise ValueError(token)
        return value, at + 1
    if token in ("-", "+"):
        value, at = _unit(tokens, at + 1, values)
        return (-value if token == "-" else value), at
    return (int(token[:20]) if token.isdigit() else values[token]), at + 1


def _apply(sign: str, left: int, right: int) -> int:
    if abs(left) > _MAX_NUMBER or abs(right) > _MAX_NUMBER:
        raise ValueError(sign)
    if sign in ("/", "%"):
        # The shell cuts toward zero, Python rounds down.
        whole = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return whole if sign == "/" else left - whole * right
    simple = {"+": left + right, "-": left - right, "*": left * right, "||": int(bool(left or right))}
    compared = {"&&": int(bool(left and right)), "==": int(left == right), "!=": int(left != right)}
    ordered = {"<": int(left < right), "<=": int(left <= right), ">": int(left > right), ">=": int(left >= right)}
    return {**simple, **compared, **ordered}[sign]
