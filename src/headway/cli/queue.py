"""Jobs of a cluster on the screen of a login node: in the list of runs, followed, and stopped."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from headway.cluster import JOB_ID, SubmittedJob, cancel_job, interrupt_job, job_of_run, list_jobs, query_job
from headway.cluster import recorded_jobs as recorded
from headway.errors import CheckError, UsageError
from headway.launch import find_holder
from headway.messages import say
from headway.telemetry import RunDir
from headway.ui.text import cell_width, clean_text

_QUICK_S: Final = 5.0
"""Longest time that a list waits for Slurm."""
_POLL_S: Final = 2.0
_DRAIN_BYTES: Final = 1 << 20


def jobs_for_list(out: Path) -> tuple[list[SubmittedJob], str | None]:
    """Return the jobs that a list of runs shows, and why they could not be asked for."""
    if not recorded(out):
        return [], None
    now = time.time()
    try:
        return [job for job in list_jobs(out, _QUICK_S) if job.is_worth_showing(now)], None
    except CheckError as err:
        return [], str(err)


def show_jobs(jobs: Sequence[SubmittedJob]) -> None:
    """Print one line per job: number, state, reason, name, and its run."""
    cells = [
        (
            job.job,
            job.state or "n/a",
            clean_text(job.reason or "-"),
            clean_text(job.name),
            "-" if job.run is None else clean_text(job.run.name),
        )
        for job in jobs
    ]
    head = tuple(say(f"cluster/column-{name}") for name in ("job", "state", "reason", "name", "run"))
    wide = [max(cell_width(row[at]) for row in (head, *cells)) for at in range(len(head))]
    for row in (head, *cells):
        padded = (cell + " " * (width - cell_width(cell)) for cell, width in zip(row, wide, strict=True))
        click.echo("  ".join(padded).rstrip())


def find_job(given: str | None, out: Path) -> SubmittedJob | None:
    """Return the job that a person means by its number; None: it is not the number of a job."""
    if given is None or not JOB_ID.fullmatch(given) or not recorded(out):
        return None
    found = [job for job in list_jobs(out, _QUICK_S * 4) if given in (job.job, job.job.partition("_")[0])]
    if len(found) > 1:
        elements = ", ".join(job.job for job in found[:8])
        raise UsageError("cluster/array-element", job=given, names=elements, first=found[0].job)
    return found[0] if found else None


def job_elsewhere(run: RunDir, out: Path) -> SubmittedJob | None:
    """Return the live job whose run this is, where its supervisor is not on this machine."""
    if find_holder(run) is not None or not recorded(out):
        return None
    return job_of_run(run.root, list_jobs(out, _QUICK_S * 4))


def stop_job(job: SubmittedJob, *, now: bool, wait_s: float) -> int:
    """Take a job out of the queue, or let its run save and end; the job is not queued again."""
    if not job.is_live:
        raise UsageError("cluster/not-live", job=job.job, state=job.state or "n/a")
    if now or job.is_waiting or job.run is None:
        cancel_job(job.job)
        click.echo(say("cluster/cancelled", job=job.job), err=True)
    else:
        interrupt_job(job.job)
        click.echo(say("cluster/stop-sent", job=job.job, run=job.run.name), err=True)
    until = time.monotonic() + wait_s
    while time.monotonic() < until:
        state = query_job(job.job)
        if state is None or not replace(job, state=state.state).is_live:
            click.echo(say("cluster/ended", job=job.job, state="n/a" if state is None else state.state))
            return 0
        time.sleep(min(_POLL_S, 0.5))
    raise UsageError("cluster/stop-slow", job=job.job, seconds=f"{wait_s:g}")


def follow_job(job: SubmittedJob) -> int:
    """Show a job's state while it waits and its output while it runs, until it has ended; 0 where it completed."""
    said, place = "", 0
    while True:
        found = query_job(job.job)
        state = "" if found is None else f"{found.state} {found.reason or ''}".strip()
        place = _pass_on(job.output, place)
        if state != said and found is not None:
            click.echo(say("cluster/now", job=job.job, state=state), err=True)
            said = state
        if found is None or not replace(job, state=found.state).is_live:
            while (more := _pass_on(job.output, place)) != place:
                place = more
            return 0 if found is None or found.state == "COMPLETED" else 1
        time.sleep(_POLL_S)


def _pass_on(output: Path, place: int) -> int:
    """Print what a file has beyond a place; return the new place."""
    try:
        with open(output, "rb") as file:
            file.seek(place)
            data = file.read(_DRAIN_BYTES)
    except FileNotFoundError:
        return place
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    return place + len(data)
