"""`headway runs`: the shelf."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.options import SHOWN_JSON, SHOWN_RUNS
from headway.messages import say
from headway.telemetry import RunDir, list_closed, list_rows, read_note
from headway.ui.terminal.follow import columns, show
from headway.ui.terminal.runs import render_runs
from headway.ui.text import clean_text

_NAMED = 5
_STATES = ("running", "done", "stopped", "failed", "interrupted", "lost")


@command("runs", help="ui/help-runs")
@option("--tag", "tags", multiple=True, help="ui/option-runs-tag")
@option("--state", "states", multiple=True, type=click.Choice(_STATES), help="ui/option-runs-state")
@SHOWN_RUNS
@SHOWN_JSON
def runs(tags: tuple[str, ...], states: tuple[str, ...], out: Path, as_json: bool) -> None:
    """List the runs of a folder."""
    rows, closed = list_rows(out), list_closed(out)
    rows = [row for row in rows if not states or row.state in states]
    rows = [row for row in rows if set(tags) <= set(read_note(RunDir(out / row.name)).tags)]
    if as_json:
        told = {"schema": "runs/1", "out": str(out), "runs": [asdict(row) for row in rows], "unreadable": closed}
        echo_json(told)
        return
    if rows:
        show(render_runs(rows, width=columns()))
    elif tags or states:
        click.echo(say("ui/runs-none-such"), err=True)
    elif not closed:
        click.echo(say("ui/runs-empty", out=out), err=True)
    if closed:
        names = ", ".join(map(clean_text, closed[:_NAMED])) + (", …" if len(closed) > _NAMED else "")
        click.echo(say("ui/runs-closed", num=len(closed), names=names), err=True)
