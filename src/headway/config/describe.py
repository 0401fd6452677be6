"""The one sentence that describes a field: the string below it in the source."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap


@functools.cache
def describe_fields(section: type) -> dict[str, str]:
    """Return field name to description, inherited fields included; source that is not there describes nothing."""
    found: dict[str, str] = {}
    for owner in reversed(section.__mro__):
        if owner.__module__ == "builtins" or owner.__module__.startswith("pydantic"):
            continue
        found.update(_read_class(owner))
    return found


def _read_class(owner: type) -> dict[str, str]:
    try:
        source = inspect.getsource(owner)
    except (OSError, TypeError):
        return {}
    tree = ast.parse(textwrap.dedent(source)).body[0]
    if not isinstance(tree, ast.ClassDef):
        return {}
    found: dict[str, str] = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            found[field.target.id] = inspect.cleandoc(below.value.value)
    return found
