"""Slurm's own commands: sbatch, squeue, sacct, scontrol."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.errors import CheckError

_ANSWER_S: Final = 60.0
_SQUEUE: Final = ("squeue", "--noheader", "--array", "--states=all", "--format=%i|%T|%r")
_SACCT: Final = ("sacct", "--noheader", "--parsable2", "--allocations", "--format=JobID,State,Reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """What Slurm says of a job."""

    job: str
    state: str
    """`PENDING`, `RUNNING`, `COMPLETED`, …"""
    reason: str | None
    """Why it is not running."""


def submit_script(script: Path) -> str:
    """Queue a batch file, whose output goes beside it; return the job's number."""
    said = _ask(["sbatch", "--parsable", script.name], cwd=script.parent)
    return said.strip().partition(";")[0]  # what follows is the name of the cluster


def query_job(job: str) -> JobState | None:
    """Return the state of a job; None: neither the queue nor the accounting knows it."""
    try:
        found = parse_squeue(_ask([*_SQUEUE, f"--jobs={job}"]))
    except CheckError as err:
        if "Invalid job id" not in str(err.facts["text"]):
            raise
        found = {}
    if job not in found:
        try:
            found = parse_sacct(_ask([*_SACCT, f"--jobs={job}"]))
        except CheckError as err:
            if "disabled" not in str(err.facts["text"]):
                raise
    return found.get(job)


def query_jobs(jobs: Sequence[str], timeout_s: float) -> dict[str, JobState]:
    """Return the states of those jobs that the queue still knows; an array's elements each, as `12_3`."""
    try:
        return parse_squeue(_ask([*_SQUEUE, f"--jobs={','.join(jobs)}"], timeout_s=timeout_s))
    except CheckError as err:
        if "Invalid job id" in str(err.facts.get("text")):
            return {}
        raise


def cancel_job(job: str) -> None:
    """Take a job out of the queue; where it runs, end it."""
    _ask(["scancel", job])


def interrupt_job(job: str) -> None:
    """Send what Ctrl-C sends to the command of a running job: it saves and ends, and is not queued again."""
    _ask(["scancel", "--signal=INT", f"{job}.0"])


def requeue_job(job: str) -> None:
    """Put a running job back into the queue."""
    _ask(["scontrol", "requeue", job])


def parse_squeue(text: str) -> dict[str, JobState]:
    """Read the lines of squeue in our format."""
    found = {}
    for line in text.splitlines():
        job, _, rest = line.strip().partition("|")
        state, _, reason = rest.partition("|")
        if job and state:
            known = reason if reason not in ("", "None", "(null)") else None
            found[job] = JobState(job=job, state=state, reason=known)
    return found


def parse_sacct(text: str) -> dict[str, JobState]:
    """Read the lines of sacct in our format: `CANCELLED by 1000` is a state with a remark."""
    found = parse_squeue(text)
    return {
        job: JobState(job=job, state=one.state.split()[0].rstrip("+"), reason=one.reason) for job, one in found.items()
    }


def _ask(words: Sequence[str], cwd: Path | None = None, timeout_s: float = _ANSWER_S) -> str:
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as err:
        raise CheckError("cluster/no-slurm", program=words[0]) from err
    except subprocess.TimeoutExpired as err:
        raise CheckError("cluster/slurm-silent", program=words[0], seconds=f"{timeout_s:g}") from err
    if done.returncode:
        text = done.stderr.strip() or f"exit code {done.returncode}"
        raise CheckError("cluster/slurm-refused", program=words[0], text=text)
    return done.stdout
