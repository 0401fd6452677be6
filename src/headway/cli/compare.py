"""`headway compare`: runs side by side."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from headway.cli.bilingual import command, echo_json
from headway.cli.options import SHOWN_JSON, SHOWN_RUNS
from headway.errors import UsageError
from headway.telemetry import find_run
from headway.ui.compare import compare_runs, find_siblings
from headway.ui.terminal.compare import render_compared
from headway.ui.terminal.follow import show


@command("compare", help="ui/help-compare")
@click.argument("names", nargs=-1, metavar="[RUN]…")
@SHOWN_RUNS
@SHOWN_JSON
def compare(names: tuple[str, ...], out: Path, as_json: bool) -> None:
    """Show in what runs differ and what came of it."""
    runs = [find_run(name, out) for name in names] or [find_run(None, out)]
    if len(runs) == 1:
        runs += find_siblings(runs[0])
    if len(runs) == 1:
        raise UsageError("ui/compare-alone", name=runs[0].name, out=out)
    rows = compare_runs(runs)
    if as_json:
        told = [
            {
                "name": row.state.name,
                "state": row.state.state,
                "settings": row.settings,
                "best": asdict(row.state.best) if row.state.best else None,
                "better_by": row.gain(rows[0]),
                "step": row.state.step,
                "samples_s": row.state.rate_samples_s,
            }
            for row in rows
        ]
        echo_json({"schema": "compare/1", "runs": told})
        return
    show(render_compared(rows))
