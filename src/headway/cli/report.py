"""`headway report`: the one-file HTML page of a run."""

from __future__ import annotations

import webbrowser
from dataclasses import asdict
from pathlib import Path

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.options import RUN, SHOWN_DRY_RUN, SHOWN_JSON, SHOWN_RUNS
from headway.messages import say
from headway.telemetry import find_run
from headway.ui.report import find_gains, gather, render, write_facts
from headway.ui.samples import list_samples


@command("report", help="report/help")
@RUN
@SHOWN_RUNS
@option("--format", "how", type=click.Choice(["html", "md", "json"]), default="html", help="report/opt-format")
@option("--to", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), help="report/opt-to")
@option("--open", "opening", type=click.Choice(["yes", "no"]), default="no", show_default=True, help="report/opt-open")
@SHOWN_DRY_RUN
@SHOWN_JSON
def report(run: str | None, out: Path, how: str, to: Path | None, opening: str, dry_run: bool, as_json: bool) -> None:
    """Write the report of a run."""
    found = find_run(run, out)
    path = to or found.report.with_suffix(f".{how}")
    if dry_run:
        if as_json:
            echo_json({"schema": "report/1", "dry_run": True, "path": str(path)})
        else:
            click.echo(say("ui/would-write", path=path))
        return
    facts = gather(found)
    samples = list_samples(found)
    if str(path) == "-":
        click.echo(render(facts, how, samples), nl=False)
        return
    write_facts(facts, path, how, samples)
    if as_json:
        gains = [{"baseline": one.name, "value": one.baseline.value, "share": one.share} for one in find_gains(facts)]
        data = {"schema": "report/1", "path": str(path), "state": asdict(facts.state), "gains": gains}
        echo_json(data | {"redone_steps": facts.redone_steps, "wall_s": facts.wall_s})
    else:
        click.echo(say("report/written", path=path))
    if opening == "yes":
        webbrowser.open(path.resolve().as_uri())
