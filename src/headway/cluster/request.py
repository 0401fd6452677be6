"""What a job of a scheduler is to be."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.errors import UsageError
from headway.redact import redact_words

MARGIN_S: Final = 60
"""Slurm looks at its clock once a minute, and the supervisor itself needs a moment after the grace of its ranks."""
_TIME: Final = re.compile(r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}|(?i:unlimited|infinite)")
_ARRAY: Final = re.compile(r"\d+(-\d+(:\d+)?)?(,\d+(-\d+(:\d+)?)?)*(%\d+)?")
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]+")
_EXPANDED: Final = re.compile(r"[%\\\n\r]")
"""Slurm puts its own values for these into the path of a job's output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One job: a command of ours, and what the scheduler is asked for."""

    name: str
    words: tuple[str, ...]
    """`train`, `run` or `resume` with its own words."""
    folder: Path
    """The job's own: batch file, output, and which run it has begun."""
    cwd: str
    python: str
    """The interpreter that has Headway, the same on every node."""
    lang: str
    grace_s: float
    """Longest time that the run needs to save."""
    nodes: int = 1
    gpus_per_node: int | None = None
    cpus_per_task: int | None = None
    time: str | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    array: str | None = None
    """Elements of an array, as Slurm writes them: `0-9`, `1,3,5`, `0-99%4`."""
    options: tuple[str, ...] = ()
    """Further options of sbatch, from the site."""
    setup: str = ""
    """Shell lines of the site that come before the command, such as `module load`."""


def refuse_request(request: Request) -> None:
    """Refuse what Slurm would read differently, and secrets: a batch file is kept, and may be read by others."""
    if request.time is not None and not _TIME.fullmatch(request.time):
        raise UsageError("cluster/bad-time", value=request.time)
    if request.time is not None and (limit_s := seconds_of(request.time)) is not None:
        needed = math.ceil(request.grace_s) + MARGIN_S
        if limit_s <= needed:
            raise UsageError("cluster/time-too-short", value=request.time, seconds=needed)
    if request.array is not None and not _ARRAY.fullmatch(request.array):
        raise UsageError("cluster/bad-array", value=request.array)
    for key in ("name", "partition", "account", "qos"):
        value = getattr(request, key)
        if value is not None and not _NAME.fullmatch(value):
            raise UsageError("cluster/bad-value", key=key, value=value)
    for value in request.options:
        if not _NAME.fullmatch(value):
            raise UsageError("cluster/bad-value", key="options", value=value)
    if _EXPANDED.search(str(request.folder)):
        raise UsageError("cluster/bad-folder", path=request.folder)
    shown = redact_words(request.words)
    for word, hidden in zip(request.words, shown, strict=True):
        if word != hidden:
            raise UsageError("cluster/secret", word=hidden)


def seconds_of(time: str) -> int | None:
    """Return a time limit of Slurm in seconds, None: no limit; `min`, `min:s`, `h:min:s`, `d-h:min` and so on."""
    if time.lower() in ("unlimited", "infinite") or time == "0":
        return None
    days, sign, rest = time.partition("-")
    if sign:
        parts = [int(part) for part in rest.split(":")]
        hours, minutes, seconds = [*parts, 0, 0][:3]
        return int(days) * 86_400 + hours * 3600 + minutes * 60 + seconds
    parts = [int(part) for part in time.split(":")]
    if len(parts) == 1:
        return parts[0] * 60
    if len(parts) == 2:
        return parts[0] * 60 + parts[1]
    return parts[0] * 3600 + parts[1] * 60 + parts[2]
