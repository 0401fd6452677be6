"""`headway runs`: the shelf."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from headway.cli.bilingual import command, echo_json
from headway.cli.options import SHOWN_JSON, SHOWN_RUNS
from headway.messages import say
from headway.telemetry import list_closed, list_rows
from headway.ui.terminal.follow import show
from headway.ui.terminal.runs import render_runs
from headway.ui.text import clean_text

_NAMED = 5


@command("runs", help="ui/help-runs")
@SHOWN_RUNS
@SHOWN_JSON
def runs(out: Path, as_json: bool) -> None:
    """List the runs of a folder."""
    rows, closed = list_rows(out), list_closed(out)
    if as_json:
        told = {"schema": "runs/1", "out": str(out), "runs": [asdict(row) for row in rows], "unreadable": closed}
        echo_json(told)
        return
    if rows:
        show(render_runs(rows))
    elif not closed:
        click.echo(say("ui/runs-empty", out=out), err=True)
    if closed:
        names = ", ".join(map(clean_text, closed[:_NAMED])) + (", …" if len(closed) > _NAMED else "")
        click.echo(say("ui/runs-closed", num=len(closed), names=names), err=True)
