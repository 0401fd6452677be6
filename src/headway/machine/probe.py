"""Reads which torch an interpreter has, without importing it.

Used here by import and in another interpreter as the text of `python -c`, so it needs nothing but the standard
library of an old Python and must not import from this package.
"""

import ast
import importlib.util
import json
import os
import platform
import sys


def describe_torch():
    # type: () -> dict[str, str | None]
    """Return python_version, torch, cuda, hip, torchvision, numpy; a key whose value is None is not there."""
    found = {"python_version": platform.python_version(), "torch": None, "cuda": None, "hip": None}
    for name in ("torchvision", "numpy"):
        found[name] = installed_version(name)
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        return found
    path = os.path.join(os.path.dirname(spec.origin), "version.py")
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    for line in tree.body:
        target = line.target if isinstance(line, ast.AnnAssign) else getattr(line, "targets", [None])[0]
        name = {"__version__": "torch"}.get(getattr(target, "id", ""), getattr(target, "id", ""))
        value = getattr(line, "value", None)
        if name in ("torch", "cuda", "hip") and isinstance(value, ast.Constant) and value.value:
            found[name] = str(value.value)
    return found


def installed_version(name):
    # type: (str) -> str | None
    """Return a package's version, from the name of its metadata folder: importlib.metadata takes 20 ms to import."""
    for place in sys.path:
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue
        for folder in names:
            head, _, tail = folder.partition("-")
            if head.lower() == name and tail.endswith((".dist-info", ".egg-info")):
                return tail.rpartition(".")[0]
    return None


if __name__ == "__main__":
    sys.path = [place for place in sys.path if place]  # `-c` puts the current folder first; ranks do not
    sys.stdout.write(json.dumps(describe_torch()))
