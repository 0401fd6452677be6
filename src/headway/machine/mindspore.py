"""Whether the ranks' interpreter has MindSpore, and a numpy it can work with. Nothing of either is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Final

from headway.errors import CheckError

_DEADLINE_S: Final = 20.0
_ASK: Final = """
import json
from importlib.metadata import PackageNotFoundError, version

def ask(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None

print(json.dumps({name: ask(name) for name in ("mindspore", "numpy")}))
"""


@dataclass(frozen=True, slots=True)
class MindSpore:
    """What an interpreter has."""

    python: str
    mindspore: str | None
    numpy: str | None


def read_mindspore(python: str | None = None) -> MindSpore:
    """Ask an interpreter, in a child process, which MindSpore and numpy it has."""
    python = python or sys.executable
    try:
        done = subprocess.run(
            [python, "-P", "-c", _ASK],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_DEADLINE_S,
            check=True,
        )
        found = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as err:
        raise CheckError("machine/python-broken", python=python, why=str(err)[:200]) from err
    return MindSpore(python, found["mindspore"], found["numpy"])


def check_mindspore(found: MindSpore) -> None:
    """Refuse an interpreter that cannot train with MindSpore."""
    if found.mindspore is None:
        raise CheckError("mindspore/missing", python=found.python)
    # With numpy 2 MindSpore only warns on import and then fails oddly in convolutions and indexing.
    if found.numpy is not None and int(found.numpy.partition(".")[0]) >= 2:
        raise CheckError("mindspore/numpy", mindspore=found.mindspore, numpy=found.numpy)
