"""Where the code uses the messages: every code literal, every computed family, and the facts handed over beside it.

Both the tests of the messages and the error book (`make_reference.py`) read the source through this file, so that
what is checked and what is documented is one and the same list.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "headway"
_CODE = re.compile(r"[a-z]+/(?!.*\.(?:py|sh|md|json|ya?ml)$)[a-z][a-z0-9.-]*")
_START = re.compile(r"[a-z]+/[a-z0-9.-]*")
_IN_TEMPLATE = re.compile(r"""["']([a-z]+/[a-z][a-z0-9-]*)["'](\s*~)?""")

SPEAKERS = frozenset({"say", "hint", "both", "both_texts", "line", "add", "stop", "refuse"})
"""Functions and methods that take a code by position and its facts by name."""
CARRIERS = frozenset({"Diagnosis", "Finding", "Phrase", "PlanWarning", "append", "emit"})
"""Records and events that take a code and a dict of facts."""


@dataclass(frozen=True, slots=True)
class Use:
    """One place that names a code, or the fixed beginning of one."""

    file: str
    line: int
    code: str
    is_family: bool = False
    """The code continues with something computed."""
    speaker: str = ""
    """The function or record the code is handed to."""
    facts: frozenset[str] | None = None
    """Names of the facts beside it; None when they cannot be read from the source."""

    @property
    def place(self) -> str:
        """Return file:line."""
        return f"{self.file}:{self.line}"


def is_texts(path: Path) -> bool:
    """Say whether a file holds texts: those of a stage, or those of a recipe beside its code."""
    return path.parent.name == "messages" or path.name == "texts.py"


@functools.cache
def find_uses(stages: frozenset[str], root: Path = SOURCE) -> list[Use]:
    """Return every use of a message of these stages below a folder."""
    uses: list[Use] = []
    for path in sorted(root.rglob("*")):
        if is_texts(path) or not path.is_file():
            continue
        name = path.relative_to(root).as_posix()
        if path.suffix == ".py":
            uses += uses_in(path.read_text(encoding="utf-8"), name, stages)
        elif path.suffix in {".html", ".j2", ".jinja"}:
            uses += _uses_in_template(path.read_text(encoding="utf-8"), name, stages)
    return uses


def literals(root: Path = SOURCE) -> frozenset[str]:
    """Return every text constant of the source and the fixed parts of every f-string: how a family may continue."""
    found: set[str] = set()
    for path in sorted(root.rglob("*.py")):
        if not is_texts(path):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found |= {
                node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
            }
            found |= {word.arg for word in ast.walk(tree) if isinstance(word, ast.keyword) and word.arg}
            found |= {name.id for name in ast.walk(tree) if isinstance(name, ast.Name)}
    return frozenset(found)


def uses_in(source: str, name: str, stages: frozenset[str]) -> list[Use]:
    """Return the uses in one file of Python."""
    tree = ast.parse(source)
    told: dict[ast.AST, tuple[str, frozenset[str] | None]] = {}
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            kept = _kept(scope)
            for call in filter(_speaks, _calls(scope)):
                before = [(name, value) for line, name, value in kept if line < call.lineno]
                for node in _codes_given(call, dict(before)):
                    told[node] = (_callee(call), _facts(call, _tables(before)))
    uses = []
    parts = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        text = _text(node)
        if text is None or node in parts or text.partition("/")[0] not in stages:
            continue
        speaker, facts = told.get(node, ("", None))
        is_family = isinstance(node, ast.JoinedStr)
        if (_START if is_family else _CODE).fullmatch(text):
            uses.append(Use(name, node.lineno, text, is_family, speaker, facts))
    return uses


def _uses_in_template(source: str, name: str, stages: frozenset[str]) -> Iterator[Use]:
    for number, line in enumerate(source.splitlines(), 1):
        for code, goes_on in _IN_TEMPLATE.findall(line):
            if code.partition("/")[0] in stages:
                yield Use(name, number, code, is_family=bool(goes_on))


def _text(node: ast.AST) -> str | None:
    """Return a constant text, or the fixed beginning of an f-string."""
    if isinstance(node, ast.JoinedStr):
        return _text(node.values[0]) if node.values else None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _calls(scope: ast.AST) -> Iterator[ast.Call]:
    """Return the calls of a scope, not those of functions inside it."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(child, ast.Call):
            yield child
        yield from _calls(child)


def _callee(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _speaks(call: ast.Call) -> bool:
    name = _callee(call)
    return name in SPEAKERS | CARRIERS or name.endswith("Error") or name == "StoppedForGood"


def _codes_given(call: ast.Call, values: Mapping[str, ast.AST]) -> list[ast.AST]:
    """Return the code literals among the arguments of a call that speaks, carries or raises; names are looked up."""
    given: list[ast.AST] = [*call.args, *(word.value for word in call.keywords if word.arg == "code")]
    given = [values.get(node.id, node) if isinstance(node, ast.Name) else node for node in given]
    both_ways = [side for node in given if isinstance(node, ast.IfExp) for side in (node.body, node.orelse)]
    return [node for node in (*given, *both_ways) if isinstance(node, ast.Constant | ast.JoinedStr)]


def _kept(scope: ast.AST) -> list[tuple[int, str, ast.AST]]:
    """Return the plain assignments of a scope: line, name and value, in their order; `facts["x"] = …` adds a key."""
    found: list[tuple[int, str, ast.AST]] = []
    for node in (node for node in ast.walk(scope) if isinstance(node, ast.Assign)):
        target = node.targets[-1]
        if isinstance(target, ast.Name):
            found.append((node.lineno, target.id, node.value))
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            more = ast.Dict(keys=[None, target.slice], values=[target.value, node.value])
            found.append((node.lineno, target.value.id, more))
    return sorted(found, key=lambda one: one[0])


def _tables(before: list[tuple[str, ast.AST]]) -> dict[str, frozenset[str] | None]:
    """Return the keys of every dict that was built from literals and kept under a name."""
    found: dict[str, frozenset[str] | None] = {}
    for name, value in before:
        found[name] = _keys(value, found)
    return found


def _keys(node: ast.AST, tables: Mapping[str, frozenset[str] | None]) -> frozenset[str] | None:
    if isinstance(node, ast.Name):
        return tables.get(node.id)
    if not isinstance(node, ast.Dict):
        return None
    keys: frozenset[str] = frozenset()
    for key, value in zip(node.keys, node.values, strict=True):
        more = _keys(value, tables) if key is None else frozenset({str(_text(key))})
        if more is None:
            return None
        keys |= more
    return keys


def _facts(call: ast.Call, tables: Mapping[str, frozenset[str] | None]) -> frozenset[str] | None:
    """Return the names of the facts a call hands over."""
    if _callee(call) in CARRIERS:
        given = [word.value for word in call.keywords if word.arg == "facts"]
        given = given or [node for node in call.args if isinstance(node, ast.Dict)]
        return _keys(given[0], tables) if given else frozenset()
    facts: frozenset[str] = frozenset()
    for word in call.keywords:
        more = frozenset({word.arg}) if word.arg else _keys(word.value, tables)
        if more is None:
            return None
        facts |= more
    return facts
