"""Small wrong changes of a source file: what a test suite that notices should notice."""

from __future__ import annotations

import ast
import copy
import dataclasses
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift,
}  # fmt: skip
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
TEXTS = {"log", "debug", "print", "emit", "text", "warn", "help", "field_serializer"}
"""Calls whose loss or change only alters a text: a mutant there says little."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change: where, what it was and is, and its place in the file's bytes."""

    path: str
    line: int
    last_line: int
    kind: str
    before: str
    after: str
    begin: int
    end: int

    def source(self, root: Path) -> str | None:
        """Return the whole file with the change, or None where Python does not take it."""
        whole = (root / self.path).read_bytes()
        text = (whole[: self.begin] + self.after.encode() + whole[self.end :]).decode()
        try:
            compile(text, self.path, "exec")
        except SyntaxError:
            return None
        return text


def mutants_of(root: Path, path: str) -> list[Mutant]:
    """Return every mutant of one file."""
    whole = (root / path).read_bytes()
    starts = [0]
    for line in whole.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: list[Mutant] = []
    for node, kind, changed in _changes(ast.parse(whole)):
        last = node.end_lineno or node.lineno
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[last - 1] + (node.end_col_offset or 0)
        after = ast.unparse(changed)
        if ast.unparse(node) == after:
            continue
        # The brackets keep the order of an expression that is part of another one, and let it span lines.
        text = f"({after})" if isinstance(changed, ast.expr) else after
        found.append(Mutant(path, node.lineno, last, kind, whole[begin:end].decode(), text, begin, end))
    return found


def draw(root: Path, folders: list[str], count: int, seed: int) -> list[Mutant]:
    """Draw mutants, as many of each folder, and of a folder by its lines."""
    chance = random.Random(seed)
    chosen: list[Mutant] = []
    for index, folder in enumerate(folders):
        every = [
            one
            for path in sorted((root / "src" / "headway" / folder).rglob("*.py"))
            for one in mutants_of(root, str(path.relative_to(root)))
        ]
        share = count // len(folders) + (index < count % len(folders))
        chance.shuffle(every)
        chosen += itertools.islice((one for one in every if one.source(root) is not None), share)
    return chosen


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str, ast.expr | ast.stmt]]:
    for node in _live(tree):
        match node:
            case ast.Compare(ops=ops):
                for place, one in enumerate(ops):
                    yield node, "compare", _with(node, ops=[*ops[:place], COMPARED[type(one)](), *ops[place + 1 :]])
            case ast.BoolOp(op=op):
                yield node, "and-or", _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
                yield node, "term", node.values[0]
            case ast.BinOp(op=op) if type(op) in COMPUTED and not _is_text(node):
                yield node, "compute", _with(node, op=COMPUTED[type(op)]())
            case ast.UnaryOp(op=ast.Not()):
                yield node, "not", node.operand
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                yield node, "sign", operand
            case ast.Constant(value=bool() as value):
                yield node, "constant", ast.Constant(value=not value)
            case ast.Constant(value=int() | float() as value):
                yield node, "constant", ast.Constant(value=value + 1)
            case ast.IfExp(body=body, orelse=orelse):
                yield node, "branch", body
                yield node, "branch", orelse
            case ast.Call(func=ast.Name(id=name)) if name in CALLED:
                yield node, "call", _with(node, func=ast.Name(id=CALLED[name]))
            case ast.Continue():
                yield node, "loop", ast.Break()
            case ast.Break():
                yield node, "loop", ast.Continue()
            case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
                yield node, "return", ast.Return(value=None)
            case ast.Raise():
                yield node, "raise", ast.Pass()
            case ast.Expr(value=ast.Call() as call) if _name(call) not in TEXTS:
                yield node, "left-out", ast.Pass()
            case ast.AugAssign(op=op) if type(op) in COMPUTED:
                yield node, "compute", _with(node, op=COMPUTED[type(op)]())


def _live(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk what runs in functions: no annotations, decorators, f-strings, tables, or blocks for the type checker."""
    if isinstance(tree, ast.Module | ast.ClassDef):
        for child in tree.body:
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from _live(child)
        return
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        for part in (*tree.args.defaults, *filter(None, tree.args.kw_defaults), *tree.body):
            yield part
            yield from _live(part)
        return
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.JoinedStr | ast.arg | ast.alias):
            continue
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        yield child
        if isinstance(child, ast.AnnAssign):
            if child.value is not None:
                yield child.value
                yield from _live(child.value)
        else:
            yield from _live(child)


def _with(node: ast.expr | ast.stmt, **changed: object) -> ast.expr | ast.stmt:
    other = copy.copy(node)
    for name, value in changed.items():
        setattr(other, name, value)
    return other


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
