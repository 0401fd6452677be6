"""Whether a job that was stopped goes back into the queue: not without progress, and not when somebody cancelled it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from headway.telemetry import read_record, write_json

MOST_IDLE: Final = 3
"""Starts in a row that may end without a new step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How one start of a job ended."""

    exit_code: int
    step: int
    """Steps that its run had taken; 0: none are known."""


def note_end(folder: Path, job: str, end: End) -> list[End]:
    """Write an end down; return all of this job."""
    path = folder / f"ends-{job}.json"
    before = [End(**one) for one in read_record(path).get("ends", [])] if path.exists() else []
    ends = [*before, end]
    write_json(path, {"ends": [asdict(one) for one in ends]})
    return ends


def judge_end(ends: Sequence[End], state: str | None) -> str | None:
    """Return the message code of why the job is not queued again; None: it is.

    Args:
        state: what Slurm says of the job. A job that somebody has cancelled, or that Slurm itself is queueing again, is
            no longer running.
    """
    if state != "RUNNING":
        return "cluster/not-running"
    best, idle = 0, 0
    for end in ends:
        idle = 0 if end.step > best else idle + 1
        best = max(best, end.step)
    return "cluster/no-progress" if idle >= MOST_IDLE else None
