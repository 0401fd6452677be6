"""A guide's command as its reader typed it: what the hints of this process, and of those behind it, tell to type."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

TYPED_AS = "--typed-as="
"""Hands the line on to a Headway command behind the guide's."""
_HIDDEN = ("--project=", "--python=", "--lr-factor=", "--lr_factor=", "--local-rank", "--local_rank")
"""Words that launchers and the scripts themselves add."""

_line: list[tuple[str, ...]] = [()]


def remember_line(program: str, argv: Sequence[str]) -> tuple[str, ...]:
    """Keep a guide's command and what was typed behind it; return the words without those that nobody typed."""
    own = list(argv).index("--") + 1 if "--" in argv else 0  # what comes before it is the script's
    words = tuple(word for word in argv[own:] if not word.startswith(_HIDDEN))
    _line[0] = (program, *words)
    return words


def typed_as() -> list[str]:
    """Return the option that tells a Headway command of this process which line was typed."""
    return [TYPED_AS + shlex.join(_line[0])] if _line[0] else []


def launcher_of(script: str) -> str:
    """Return how a Python script was started: by its launcher, or by itself."""
    ranks = os.environ.get("WORLD_SIZE", "")
    if "TORCHELASTIC_RUN_ID" not in os.environ or not ranks.isdigit():
        return f"python {script}"
    if any(name.startswith("ACCELERATE_") for name in os.environ):
        return f"accelerate launch --num_processes {ranks} --multi_gpu {script}"
    return f"torchrun --nproc_per_node={ranks} {script}"
