"""The interpreter and the torch behind a torchrun line, before ranks are started in its place.

A `torchrun` on PATH may be anything: a site's wrapper, a container's shim, another project's program. Only one that is
torch's own is replaced, since only of that one is it known what it would have started.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.adopt.elastic import Elastic
from headway.adopt.shell.bash import find_program

_ASK_S: Final = 20.0
_HEAD_BYTES: Final = 4096
_OWN_MAIN: Final = b"from torch.distributed.run import main"
_LONG_PATH: Final = re.compile(r"^'''exec' (.+) \"\$0\" \"\$@\"$", re.MULTILINE)
"""How pip writes the first line of a script where the interpreter's path is too long for a kernel."""
_ASK: Final = """
import importlib.util, json, sys
if sys.argv[1] == "script":
    del sys.path[0]
found = importlib.util.find_spec("torch")
print(json.dumps([sys.executable, found.origin if found is not None else None]))
"""


@dataclass(frozen=True, slots=True)
class Torch:
    """What the ranks are started with."""

    python: str
    """As `sys.executable` of the launcher says."""
    local_rank_flag: str
    """How this version spells it: with a dash since 2.0."""


def find_torch(line: Elastic, environ: Mapping[str, str]) -> Torch | None:
    """Return the interpreter of a line whose launcher is torch's own; None where it is not, or cannot be known."""
    program = shutil.which(find_program([line.program], environ), path=environ.get("PATH"))
    assert program is not None, "a program that was found is found again"
    python = program if line.is_module else _interpreter(Path(program), environ)
    # A script in place of an interpreter (a version manager's shim, a wrapper) decides for itself what it starts.
    if python is None or not is_binary(Path(python)):
        return None
    try:
        asked = [python, "-c", _ASK, "module" if line.is_module else "script"]
        done = subprocess.run(
            asked,
            capture_output=True,
            text=True,
            timeout=_ASK_S,
            check=False,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
        )
        executable, origin = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    folder = Path(str(origin)).parent
    if not executable or not (folder / "distributed" / "run.py").is_file() or not list(folder.glob("_C.*")):
        return None
    return Torch(executable, "--local_rank" if _version(folder).startswith(("0.", "1.")) else "--local-rank")


def is_binary(program: Path) -> bool:
    """Say whether a program is machine code and no script, which may do anything when it is asked something."""
    return _head(program).startswith(b"\x7fELF")


def _head(program: Path) -> bytes:
    try:
        with program.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


def _interpreter(program: Path, environ: Mapping[str, str]) -> str | None:
    """Return the interpreter of torch's own console script."""
    head = _head(program)
    if not head.startswith(b"#!") or _OWN_MAIN not in head:
        return None
    text = head.decode("utf-8", "replace")
    words = text.splitlines()[0][2:].split()
    if words and Path(words[0]).name == "env" and len(words) == 2:
        return shutil.which(words[1], path=environ.get("PATH"))
    long = _LONG_PATH.search(text)
    if long is not None:
        words = shlex.split(long[1])
    return words[0] if len(words) == 1 and Path(words[0]).name.startswith("python") else None


def _version(folder: Path) -> str:
    found = re.search(r"^__version__ = ['\"]([^'\"]+)", _head(folder / "version.py").decode("utf-8", "replace"), re.M)
    return found[1] if found is not None else ""
