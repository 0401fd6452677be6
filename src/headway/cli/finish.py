"""What every command that starts a run does in the end: supervise it with a screen, or leave it to the background."""

from __future__ import annotations

import sys
from typing import TextIO

import click

from headway.bridges import read_notes
from headway.launch import LOG_NAME, Claims, Crew, Job, Lease, Nursery, Outcome
from headway.messages import say
from headway.planner import Plan
from headway.start.detach import Orders, detach_run
from headway.start.nursery import nursery_for_line
from headway.start.supervise import Conclusion, conclude, supervise
from headway.telemetry import RunDir, has_scalars, read_beat, read_events, require_record
from headway.ui.terminal.ending import ending_lines, line_ending_lines, typed
from headway.ui.terminal.failure import failure_text
from headway.ui.terminal.run_screen import LineScreen, RunScreen


def finish(
    run: RunDir,
    nursery: Nursery,
    claims: Claims,
    *,
    is_watched: bool = True,
    lease: Lease | None = None,
    crew: Crew | None = None,
) -> int:
    """Supervise a run on this terminal, or in the background into supervisor.log; return the exit code."""
    plan = require_record(run.plan, Plan.from_json)
    screen = RunScreen(sys.stderr, plan, log=None if is_watched else run.log)
    try:
        outcome = supervise(run, nursery, screen, claims, lease=lease, crew=crew)
        screen.tick([read_beat(run.heartbeat(rank)) for rank in range(plan.world_size)])
    finally:
        screen.close()
    say_ending(run, outcome, sys.stderr)
    return outcome.exit_code


def finish_line(
    run: RunDir,
    job: Job,
    claims: Claims,
    *,
    is_watched: bool = True,
    nursery: Nursery | None = None,
    crew: Crew | None = None,
) -> int:
    """Supervise a launch line in the same way."""
    world_size = job.world_size if crew is None else crew.world_size
    screen = LineScreen(sys.stdout, sys.stderr, world_size, log=None if is_watched else run.log)
    click.echo(say("run/made", run=run.root), err=True)
    try:
        outcome = supervise(run, nursery or nursery_for_line(job), screen, claims, job=job, crew=crew)
    finally:
        screen.close()
    say_ending(run, outcome, sys.stderr, is_line=True)
    return outcome.exit_code


def say_ending(run: RunDir, outcome: Outcome, stream: TextIO, *, is_line: bool = False) -> None:
    """Write the report and say the end. The run is over and its history is written: nothing here may change that."""
    try:
        # Of a line in which nobody has seen a step there is nothing to report.
        is_seen = not is_line or outcome.steps > 0 or outcome.state != "done" or has_scalars(run)
        conclusion = conclude(run) if is_seen else Conclusion()
        if conclusion.trouble:
            told = say("console/end-no-report", command=typed("report", run), why=conclusion.trouble)
            stream.write(f"{told}\n")
        lines = line_ending_lines(run, outcome) if is_line else ending_lines(run, outcome, conclusion)
        lines = [*_trouble(run), *lines]
    except Exception as err:  # border: clean-up; a full disk, a directory that was moved, a report that fails
        lines = ["", say("console/end-untold", run=run.root, why=f"{type(err).__name__}: {err}")]
        lines += failure_text(outcome) if outcome.state != "done" else []
    stream.write("\n".join(lines) + "\n")
    stream.flush()


def _trouble(run: RunDir) -> list[str]:
    """Return what alerts and trackers could not do since the run was started last."""
    starts = [event["t"] for event in read_events(run.events) if event.get("kind") in ("run_started", "run_resumed")]
    found: dict[str, None] = {}
    for note in read_notes(run):
        if note["t"] < max(starts, default=0.0):
            continue
        if note["kind"] == "not_sent":
            found[say("alert/not-sent", why=say(note["why"], **note["facts"]))] = None
        elif note["kind"] == "trouble":
            found[say(note["code"], **note["facts"])] = None
    return list(found)


def finish_behind(
    run: RunDir, claims: Claims, orders: Orders, *, wait_s: float = 300.0, lease: Lease | None = None
) -> int:
    """Let a supervisor of its own session run it; return once it trains, or after `wait_s`, or how it has ended."""
    started = detach_run(run, orders, claims, wait_s=wait_s, lease=lease)
    if started.state == "ended":
        click.echo((run.root / LOG_NAME).read_text(encoding="utf-8", errors="replace").rstrip(), err=True)
        if not started.exit_code:
            click.echo(say("cli/detached-ended", run=run.name))
        return started.exit_code or 0
    click.echo(say("cli/detached" if started.state == "training" else "cli/detached-starting", run=run.name))
    click.echo(say("cli/next", command=typed("watch", run)))
    return 0
