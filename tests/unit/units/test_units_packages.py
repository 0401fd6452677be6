"""Every package that the source imports is declared: none is there only because another package brings it."""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DISTRIBUTIONS = {"PIL": "pillow", "markdown_it": "markdown-it-py", "pynvml": "nvidia-ml-py", "ruamel": "ruamel.yaml"}
_LINE = re.compile(r"^[ \t]*(?:import|from)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)


def test_every_imported_package_is_declared():
    found: dict[str, str] = {}
    files = [path for path in (ROOT / "src").rglob("*.py") if "project" not in path.parts and "site" not in path.parts]
    assert len(files) > 400
    here, declared = sys.stdlib_module_names | {"headway", "__main__"}, _declared()
    for path in files:
        text = path.read_text(encoding="utf-8")
        # Most files name nothing but known packages at the beginning of a line; only the others are parsed.
        named = {name for name in _LINE.findall(text) if name not in here and _normal(name) not in declared}
        for name in named & _imports(text) if named else ():
            found.setdefault(name, str(path.relative_to(ROOT)))
    assert found == {}


def _imports(text: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.partition(".")[0])
    return names


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", DISTRIBUTIONS.get(name, name)).lower()


def _declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    return {re.sub(r"[-_.]+", "-", re.split(r"[<>=!~ \[;]", one)[0]).lower() for one in wanted}
