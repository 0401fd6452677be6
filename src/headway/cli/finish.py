"""What every command that starts a run does in the end: supervise it with a screen, or leave it to the background."""

from __future__ import annotations

import sys
from typing import TextIO

import click

from headway.launch import Lease, Nursery, Outcome
from headway.messages import say
from headway.planner import Plan
from headway.start.detach import detach_run
from headway.start.supervise import conclude, supervise
from headway.telemetry import RunDir, read_beat, require_record
from headway.ui.console import RunConsole
from headway.ui.terminal.ending import ending_lines, typed
from headway.ui.terminal.failure import failure_text


def finish(run: RunDir, nursery: Nursery, *, is_watched: bool = True, lease: Lease | None = None) -> int:
    """Supervise a run on this terminal, or in the background into supervisor.log; return the exit code."""
    stream = sys.stderr
    plan = require_record(run.plan, Plan.from_json)
    screen = RunConsole(stream, plan, log=None if is_watched else run.log)
    try:
        outcome = supervise(run, nursery, screen, lease=lease)
        screen.tick([read_beat(run.heartbeat(rank)) for rank in range(plan.world_size)])
    finally:
        screen.close()
    say_ending(run, outcome, stream)
    return outcome.exit_code


def say_ending(run: RunDir, outcome: Outcome, stream: TextIO) -> None:
    """Write the report and say the end. The run is over and its history is written: nothing here may change that."""
    try:
        conclusion = conclude(run)
        if conclusion.trouble:
            told = say("console/end-no-report", command=typed("report", run), why=conclusion.trouble)
            stream.write(f"{told}\n")
        lines = ending_lines(run, outcome, conclusion)
    except Exception as err:  # border: clean-up; a full disk, a directory that was moved, a report that fails
        lines = ["", say("console/end-untold", run=run.root, why=f"{type(err).__name__}: {err}")]
        lines += failure_text(outcome) if outcome.state != "done" else []
    stream.write("\n".join(lines) + "\n")
    stream.flush()


def finish_behind(run: RunDir, lease: Lease | None = None) -> int:
    """Let a supervisor of its own session run it; return once it trains."""
    started = detach_run(run, lease)
    if started.state == "ended" and started.exit_code:
        click.echo((run.root / "supervisor.log").read_text(encoding="utf-8", errors="replace").rstrip(), err=True)
        return started.exit_code
    click.echo(say("cli/detached", run=run.name))
    click.echo(say("cli/next", command=typed("watch", run)))
    return 0
