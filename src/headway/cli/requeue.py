"""`headway requeue`: what a batch file asks at the end of a run that was stopped. Hidden: it is for a job's own use."""

from __future__ import annotations

import os
from pathlib import Path

import click

from headway.cli.bilingual import command, option
from headway.cluster import MOST_IDLE, End, judge_end, note_end, own_job, query_job, requeue_job
from headway.errors import StoppedForGood, UsageError
from headway.messages import say
from headway.telemetry import RunDir, run_state


@command("requeue", help="cluster/requeue-help")
@click.argument("folder", type=click.Path(path_type=Path))
@option("--exit-code", type=click.IntRange(0, 255), required=True, help="cluster/option-exit-code")
def requeue(folder: Path, exit_code: int) -> int:
    """See the message `cluster/requeue-help`."""
    job = own_job(os.environ)
    if job is None:
        raise UsageError("cluster/not-in-job")
    named = folder / f"run-{job}"
    step = run_state(RunDir(Path(os.fsdecode(named.read_bytes())))).step if named.exists() else 0
    ends = note_end(folder, job, End(exit_code=exit_code, step=step))
    found = query_job(job)
    why = judge_end(ends, found.state if found else None)
    if why == "cluster/no-progress":
        raise StoppedForGood(why, num=MOST_IDLE, step=step, job=job)
    if why is not None:
        click.echo(say(why, job=job, state=found.state if found else "n/a"), err=True)
        return exit_code
    click.echo(say("cluster/requeued", job=job, step=step), err=True)
    requeue_job(job)
    return exit_code
