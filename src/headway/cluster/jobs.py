"""Jobs that were submitted from a folder of runs: what is recorded of them, and what Slurm says of them now."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headway.cluster.slurm import JobState, query_jobs
from headway.telemetry import number, read_record, words, write_json

RECORD_NAME: Final = "submitted.json"
JOB_ID: Final = re.compile(r"\d+(?:_\d+)?")
"""Slurm's number of a job, or of one element of an array."""
_DAY_S: Final = 86_400.0
_MOST: Final = 500
"""Newest jobs that Slurm is asked about."""
_WAITS: Final = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESIZING", "SUSPENDED")
_RUNS: Final = ("RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT", "STOPPED")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedJob:
    """One job, or one element of an array."""

    job: str
    name: str
    folder: Path
    submitted: float
    state: str | None = None
    """As Slurm calls it; None: Slurm does not know the job any more."""
    reason: str | None = None
    run: Path | None = None
    """The run directory that it has begun."""

    @property
    def is_waiting(self) -> bool:
        """Say whether it is in the queue."""
        return self.state in _WAITS

    @property
    def is_live(self) -> bool:
        """Say whether it waits or runs."""
        return self.state in (*_WAITS, *_RUNS)

    @property
    def output(self) -> Path:
        """Return where its output is."""
        return self.folder / f"output-{self.job}.log"

    def is_worth_showing(self, now: float) -> bool:
        """Say whether it is more than its run tells: it waits, runs, or has ended without a run today."""
        return self.is_live or (self.state is not None and self.run is None and now - self.submitted < _DAY_S)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {
            "engine": "slurm",
            "job": self.job,
            "name": self.name,
            "state": self.state,
            "reason": self.reason,
            "run": None if self.run is None else str(self.run),
            "folder": str(self.folder),
            "submitted": self.submitted,
        }


def own_job(environ: Mapping[str, str]) -> str | None:
    """Return the job that this process belongs to, an array's element as `12_3`; None: it is in no job of Slurm."""
    job, array = environ.get("SLURM_JOB_ID"), environ.get("SLURM_ARRAY_JOB_ID")
    return f"{array}_{environ.get('SLURM_ARRAY_TASK_ID')}" if array else job or None


def record_job(folder: Path, job: str, name: str) -> None:
    """Write down that a job was submitted."""
    write_json(folder / RECORD_NAME, {"schema": "submitted/1", "job": job, "name": name, "t": time.time()})


def recorded_jobs(out: Path) -> list[SubmittedJob]:
    """Return the jobs of a folder of runs, newest first, without asking Slurm."""
    found = []
    for file in (out / "slurm").glob(f"*/{RECORD_NAME}"):
        known = read_record(file)
        job = words(known.get("job"))
        if job is not None and JOB_ID.fullmatch(job):
            name = words(known.get("name")) or ""
            found.append(SubmittedJob(job=job, name=name, folder=file.parent, submitted=number(known.get("t"))))
    return sorted(found, key=lambda one: one.submitted, reverse=True)


def list_jobs(out: Path, timeout_s: float) -> list[SubmittedJob]:
    """Return the jobs of a folder of runs with what Slurm says of each; of an array, each element.

    Raises:
        CheckError: Slurm's commands are not here, or do not answer.
    """
    known = recorded_jobs(out)[:_MOST]
    states = query_jobs([one.job for one in known], timeout_s) if known else {}
    return [one for job in known for one in _with_states(job, states)]


def job_of_run(run: Path, jobs: Iterable[SubmittedJob]) -> SubmittedJob | None:
    """Return the live job whose run this is."""
    place = run.absolute()
    return next((job for job in jobs if job.is_live and job.run is not None and job.run.absolute() == place), None)


def _with_states(job: SubmittedJob, states: Mapping[str, JobState]) -> list[SubmittedJob]:
    own = [one for name, one in states.items() if name.partition("_")[0] == job.job]
    if not own:
        return [_with_state(job, job.job, None)]
    return [_with_state(job, one.job, one) for one in own]


def _with_state(job: SubmittedJob, job_id: str, state: JobState | None) -> SubmittedJob:
    named = job.folder / f"run-{job_id}"
    run = None
    if named.is_file():
        run = Path(named.read_bytes().decode("utf-8", "surrogateescape"))
    return SubmittedJob(
        job=job_id,
        name=job.name,
        folder=job.folder,
        submitted=job.submitted,
        state=state.state if state is not None else None,
        reason=state.reason if state is not None else None,
        run=run,
    )
