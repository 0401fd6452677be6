"""`headway attach` and `headway stop`: hold the reins of a run that trains in the background."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from headway.cli.bilingual import command, option
from headway.cli.options import RUN, RUNS
from headway.cli.queue import find_job, job_elsewhere, stop_job
from headway.cluster import interrupt_job
from headway.errors import UsageError
from headway.launch import find_holder, request_stop
from headway.messages import say
from headway.process import find_pid
from headway.telemetry import ENDED, RunDir, find_run, is_supervised, run_state
from headway.ui.terminal.follow import follow
from headway.ui.terminal.watch import one_line

_POLL_S = 0.1


@command("attach", help="cli/attach-help")
@RUN
@RUNS
def attach(run: str | None, out: Path) -> int:
    """See the message `cli/attach-help`."""
    place = find_run(run, out)
    while not _follow(place):
        # Once: save and stop. Again: stop now; the supervisor knows the difference.
        job = job_elsewhere(place, out)
        if job is not None:
            interrupt_job(job.job)
        else:
            request_stop(place)
        click.echo(say("cli/stop-sent", run=place.name), err=True)
    return 0


def _follow(place: RunDir) -> bool:
    if sys.stdout.isatty():
        return follow(place, None, every_s=0.5)
    return follow(place, lambda view: click.echo(one_line(view)), every_s=30.0)


@command("stop", help="cli/stop-help")
@RUN
@option("--now", is_flag=True, help="cli/option-now")
@option("--wait", "wait_s", default=60.0, type=click.FloatRange(min=0), help="cli/option-wait")
@RUNS
def stop(run: str | None, now: bool, wait_s: float, out: Path) -> int:
    """See the message `cli/stop-help`."""
    job = find_job(run, out)
    if job is not None:
        return stop_job(job, now=now, wait_s=wait_s)
    place = find_run(run, out)
    job = job_elsewhere(place, out)
    if job is not None:  # its supervisor is on a node that we cannot signal; Slurm can
        return stop_job(job, now=now, wait_s=wait_s)
    deadline = time.monotonic() + wait_s
    asked: set[int] = set()
    while True:
        state = run_state(place).state
        if asked and state in ENDED and not is_supervised(place):
            click.echo(say("cli/stopped", run=place.name, state=say(f"ui/state-{state}")))
            return 0
        is_over = time.monotonic() >= deadline
        holder = find_holder(place)
        # Just started, and nobody supervises it yet: whoever is about to must be asked, or it would train.
        is_starting = holder is None and (state == "running" or bool(asked))
        if not is_starting or (is_over and not asked):
            _ask(place, now, holder, asked)
        if is_over:
            raise UsageError("cli/stop-slow", run=place.name, seconds=f"{wait_s:g}")
        time.sleep(_POLL_S)


def _ask(place: RunDir, now: bool, holder: dict[str, Any] | None, asked: set[int]) -> None:
    """Ask the holder to stop, once; a run that is handed over to a background process gets another holder."""
    if holder is not None and find_pid(holder) in asked:
        return
    pid = request_stop(place, now)
    if not asked:
        click.echo(say("cli/stop-sent", run=place.name), err=True)
    asked.add(pid)
