"""`--help` of a project's scripts: what the script does here, and what it takes. Nothing is started."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence

from headway.guide.flags import FULL_SIZE, HELP
from headway.guide.log import write
from headway.guide.place import enter_project
from headway.guide.typed import remember_line
from headway.messages import say

_TAKES_NONE = ("monitor_training",)
"""Entries that take no setting of a config and have no size."""


def run_command(
    recipe: str, entry: str, argv: Sequence[str], remember: Callable[[str, Sequence[str]], object] = lambda *_: None
) -> int:
    """Run one of a guide's commands, or explain it.

    Args:
        remember: takes the command and what was typed behind it, for the hints of this process.
    """
    commands = importlib.import_module(f"headway.recipes.{recipe}.guide")
    if any(word in HELP for word in argv):
        if os.environ.get("LOCAL_RANK", "0") == "0":
            write(say(commands.HELP[entry]))
            write(say("guide/help-end" if entry in _TAKES_NONE else "guide/help-tail", flag=FULL_SIZE))
        return 0
    program = commands.program(entry, argv)
    remember(program, remember_line(program, argv))
    code: int = commands.main(entry, enter_project(argv))
    return code
