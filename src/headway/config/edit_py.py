"""`.py` files: a literal replaced in place, an assignment or a member of a dict added."""

from __future__ import annotations

import ast
import re
import warnings

from headway.config.edit_spot import Spot, Table, add_member, line_break
from headway.config.spelling import write_value
from headway.config.tree import Lines

_COMMENT = re.compile(r"#[^\r\n]*")


def edit_py(text: str, spot: Spot, value: bool | int | float | str) -> str:
    """Return the text with one value changed or added."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as the reader does
        tree = ast.parse(text)
    found, missing = spot.descend()
    written = write_value("py", value) if not isinstance(value, str) else _quote(value)
    if not found:
        newline = line_break(text)
        lead = text if not text or text.endswith(("\n", "\r")) else text + newline
        return f"{lead}{_assign(missing, written)}{newline}"
    place = _Places(text)
    have = spot.words[: len(spot.words) - len(missing)]
    node = _find(tree, have)
    if node is None:
        raise spot.refuse()
    if missing and isinstance(node, ast.Dict):
        last_key, last = (node.keys[-1], node.values[-1]) if node.keys else (None, None)
        table = Table(
            start=place.start(node),
            end=place.end(node) - 1,
            last_start=place.start(last_key) if last_key else None,
            last_end=place.end(last) if last else place.start(node) + 1,
        )
        member = f"{_quote(missing[0])}: {_nested(missing[1:], written)}"
        return add_member(text, table, member, comment=_COMMENT, line_comment=("#",))
    if not _is_literal(node) or (missing and not _is_none(node)):
        raise spot.refuse()
    if isinstance(value, str) and text.startswith("'", place.start(node)):
        written = repr(value)
    return text[: place.start(node)] + _nested(missing, written) + text[place.end(node) :]


class _Places:
    """Offsets of ast's nodes: it counts columns in bytes."""

    def __init__(self, text: str) -> None:
        self._lines = Lines(text)
        self._bytes = [line.encode() for line in re.split(r"\r\n|\n|\r", text)]

    def start(self, node: ast.expr) -> int:
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr) -> int:
        return self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def _offset(self, line: int, column: int) -> int:
        return self._lines.offset(line, len(self._bytes[line - 1][:column].decode("utf-8", "replace")) + 1)


def _find(tree: ast.Module, words: tuple[str, ...]) -> ast.expr | None:
    """Return the expression a name of the file is given, or one inside its dict."""
    node: ast.expr | None = None
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        if any(isinstance(target, ast.Name) and target.id == words[0] for target in targets):
            assert isinstance(statement, ast.Assign | ast.AnnAssign)
            node = statement.value
    for word in words[1:]:
        if not isinstance(node, ast.Dict):
            return None
        pairs = zip(node.keys, node.values, strict=True)
        node = next((item for key, item in pairs if isinstance(key, ast.Constant) and key.value == word), None)
    return node


def _is_literal(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _assign(words: tuple[str, ...], written: str) -> str:
    return f"{words[0]} = {_nested(words[1:], written)}"


def _nested(words: tuple[str, ...], written: str) -> str:
    for word in reversed(words):
        written = f"{{{_quote(word)}: {written}}}"
    return written


def _quote(text: str) -> str:
    """Return a text in double quotes where that takes no escapes: what formatters make of it."""
    return f'"{text}"' if text.isprintable() and '"' not in text and "\\" not in text else repr(text)
