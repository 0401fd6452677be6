"""`headway runs`: the shelf."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from headway.cli.shape import command, option
from headway.messages import say
from headway.telemetry import list_rows, plain
from headway.ui.screen import render_runs, show


@command("runs", help="ui/help-runs")
@option("--runs", "--out", "out", default="runs", show_default=True, type=click.Path(path_type=Path), help="ui/opt-out")
@option("--json", "as_json", is_flag=True, help="ui/opt-json")
def runs(out: Path, as_json: bool) -> None:
    """List the runs of a folder."""
    rows = list_rows(out)
    if as_json:
        click.echo(json.dumps(plain({"schema": "runs/1", "out": str(out), "runs": [asdict(row) for row in rows]})))
    elif rows:
        show(render_runs(rows))
    else:
        click.echo(say("ui/runs-empty", out=out), err=True)
