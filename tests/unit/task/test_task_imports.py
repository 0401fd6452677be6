"""The contract of recipes loads no framework, and everything a recipe needs is in it."""

import ast
import subprocess
import sys
from pathlib import Path

import headway.recipes

ALLOWED = ("headway.task", "headway.guide", "headway.errors", "headway.units", "headway.messages")


def test_the_contract_loads_no_framework():
    heavy = "{'torch', 'mindspore', 'numpy'}"
    code = f"import sys, headway.task; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_recipe_imports_the_contract_and_itself_only():
    root = Path(headway.recipes.__file__).parent
    files = [file for file in root.rglob("*.py") if file.parent != root and "guide" not in file.parent.name]
    assert len(files) > 100
    for file in files:
        own = f"headway.recipes.{file.relative_to(root).parts[0]}"
        for name in _imports(file):
            # The guides' files are held to their own rule.
            if "guide" not in file.name and name.startswith("headway"):
                assert name.startswith((*ALLOWED, own)), f"{file.relative_to(root)} imports {name}"


def _imports(file: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "headway":
            found += [f"headway.{each.name}" for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found += [each.name for each in node.names]
    return found
