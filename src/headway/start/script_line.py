"""The launch line behind `--script`: what it runs, on how many ranks, with which interpreter."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from headway.adopt import SHELLS_OWN, Expanded, Launch, expand, understand
from headway.errors import PlanError, UsageError
from headway.planner import ScriptLine

_PYTHON: Final = re.compile(r".*/python[\d.]*")
_TORCHRUN: Final = ("torchrun", "torch.distributed.launch")


def read_script(text: str, *, num_gpus: int) -> ScriptLine:
    """Return what a launch line runs and on how many ranks.

    Args:
        num_gpus: of the machine, for lines that leave the number of ranks to it.
    """
    text = f"python {text}" if _is_bare(text) else text
    expanded = expand(text)
    launch = understand(text if expanded is None else _with_real_values(expanded)).launch
    entry = launch.entry if launch is not None else None
    if launch is None or entry is None or entry.kind == "command" or entry.name.endswith((".sh", ".bash")):
        raise UsageError("plan/script-unread", line=text)
    if entry.kind == "script" and not Path(entry.name).is_file():
        raise UsageError("plan/script-missing", path=entry.name)
    if launch.launcher == "deepspeed":
        raise PlanError("plan/script-sharded", where=entry.name, what="DeepSpeed")
    visible = launch.cuda_visible_devices
    said = launch.nproc_per_node
    if said is None and launch.launcher in _TORCHRUN:
        said = os.environ.get("PET_NPROC_PER_NODE")
    here = num_gpus if visible is None else min(num_gpus, len(visible)) if num_gpus else 0
    local = _count(said, here)
    nodes = _count(launch.nnodes, 1)
    if num_gpus and local > num_gpus:
        raise PlanError("plan/script-ranks", ranks=local, gpus=num_gpus)
    is_launched = launch.launcher not in ("python", "other")
    return ScriptLine(
        text=text,
        entry=entry.name,
        kind=entry.kind,
        args=launch.args,
        ranks=launch.world_size or local * nodes,
        local_ranks=local,
        has_gpus=num_gpus > 0,
        is_launched=is_launched,
        env=_environment(launch),
        python=_interpreter(text.split() if expanded is None else expanded.words),
    )


def _with_real_values(found: Expanded) -> str:
    """Return the line with what bash makes of it in this environment, as `headway run` would start it."""
    own = {name: value for name, value in found.environ.items() if os.environ.get(name) != value}
    settings = [f"{name}={shlex.quote(value)}" for name, value in own.items() if name not in SHELLS_OWN]
    return " ".join([*settings, shlex.join(found.words)])


def _environment(launch: Launch) -> dict[str, str]:
    """Return what the line sets for its ranks; the GPUs are the plan's."""
    env = {name: value for name, value in launch.env.items() if name != "CUDA_VISIBLE_DEVICES"}
    if launch.launcher == "accelerate" and launch.mixed_precision is not None:
        env["ACCELERATE_MIXED_PRECISION"] = launch.mixed_precision
    return env


def _is_bare(text: str) -> bool:
    """Say whether a line begins with a script or `-m`, its interpreter left out."""
    first = next(iter(text.split()), "")
    return first == "-m" or first.endswith(".py")


def _count(said: int | str | None, here: int) -> int:
    """Return a number of ranks or nodes; words leave it to the machine."""
    if said is None:
        return 1
    return int(said) if str(said).isdigit() else max(1, here)


def _interpreter(words: Sequence[str]) -> str:
    """Return the interpreter the line names by its path; else ours, if torch is in it; else the shell's."""
    named = next((word for word in words if _PYTHON.fullmatch(word)), None)
    if named is not None:
        return named
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    return shutil.which("python") or sys.executable
