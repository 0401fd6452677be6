"""The question before somebody else's code runs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headway.messages import say


def ask_trust(path: Path) -> bool:
    """Ask on a terminal whether code may run; elsewhere nobody can answer."""
    can_ask = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    return can_ask and click.confirm(say("cli/ask-trust", path=path), err=True)
