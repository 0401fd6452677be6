"""Where a project's script works: in the project's folder, from wherever it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from headway.messages import say

_FLAG = "--project="


def enter_project(argv: Sequence[str]) -> list[str]:
    """Go to the folder that the script gives in its first word; return the other words.

    A file or folder that is there where the command was typed is still the one that is meant.
    """
    if not argv or not argv[0].startswith(_FLAG):
        return list(argv)
    project, here = Path(argv[0].removeprefix(_FLAG)).resolve(), Path.cwd()
    if project == here:
        return list(argv[1:])
    # What is before `--` was written in the script, for the project's folder.
    own = argv.index("--") if "--" in argv else 0
    words = [word if place < own else _from_here(word, here) for place, word in enumerate(argv)][1:]
    os.chdir(project)
    if os.environ.get("LOCAL_RANK", "0") == "0":
        sys.stderr.write(say("guide/elsewhere", folder=project) + "\n")
    return words


def _from_here(word: str, here: Path) -> str:
    """Return a word with its path written in full, where it is one: `FILE`, `--flag=FILE` or `key=FILE`."""
    head, is_pair, value = word.partition("=")
    path = here / (value if is_pair else word)
    is_path = path.is_file() or ("/" in (value if is_pair else word) and path.exists())
    if not is_path:
        return word
    return f"{head}={path}" if is_pair else str(path)
