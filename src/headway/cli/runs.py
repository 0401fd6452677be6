"""`headway runs`: list the runs of a folder, and delete some."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click
from click.core import ParameterSource

from headway.cli.bilingual import argument, echo_json, group, option
from headway.cli.options import SHOWN_DRY_RUN, SHOWN_JSON, SHOWN_RUNS
from headway.cli.queue import jobs_for_list, show_jobs
from headway.errors import UsageError
from headway.messages import say
from headway.telemetry import (
    RunDir,
    count_bytes,
    find_run,
    list_closed,
    list_rows,
    read_note,
    refuse_removal,
    remove_run,
)
from headway.ui.terminal.follow import columns, show
from headway.ui.terminal.runs import render_runs
from headway.ui.text import clean_text
from headway.units import size

_NAMED = 5
_STATES = ("running", "done", "stopped", "failed", "interrupted", "lost")


@group("runs", help="ui/help-runs", invoke_without_command=True, subcommand_metavar="[rm RUN…]")
@option("--tag", "tags", multiple=True, help="ui/option-runs-tag")
@option("--state", "states", multiple=True, type=click.Choice(_STATES), help="ui/option-runs-state")
@SHOWN_RUNS
@SHOWN_JSON
@click.pass_context
def runs(ctx: click.Context, tags: tuple[str, ...], states: tuple[str, ...], out: Path, as_json: bool) -> None:
    """List the runs of a folder."""
    if ctx.invoked_subcommand is not None:
        return
    rows, closed = list_rows(out), list_closed(out)
    rows = [row for row in rows if not states or row.state in states]
    rows = [row for row in rows if set(tags) <= set(read_note(RunDir(out / row.name)).tags)]
    jobs, trouble = jobs_for_list(out)
    if as_json:
        told = {"schema": "runs/1", "out": str(out), "runs": [asdict(row) for row in rows], "unreadable": closed}
        echo_json({**told, "jobs": [job.to_json() for job in jobs], "jobs_trouble": trouble})
        return
    if rows:
        show(render_runs(rows, width=columns()))
    elif tags or states:
        click.echo(say("ui/runs-none-such"), err=True)
    elif not closed and not jobs:
        click.echo(say("ui/runs-empty", out=out), err=True)
    if closed:
        names = ", ".join(map(clean_text, closed[:_NAMED])) + (", …" if len(closed) > _NAMED else "")
        click.echo(say("ui/runs-closed", num=len(closed), names=names), err=True)
    if jobs:
        click.echo()
        show_jobs(jobs)
    if trouble is not None:
        click.echo(say("cluster/jobs-unknown", why=trouble), err=True)


@runs.command("rm", help="ui/help-runs-rm")
@argument("names", nargs=-1, required=True, metavar="RUN…")
@option("--yes", "-y", is_flag=True, help="ui/option-rm-yes")
@SHOWN_RUNS
@SHOWN_DRY_RUN
@SHOWN_JSON
def remove(names: tuple[str, ...], yes: bool, out: Path, dry_run: bool, as_json: bool) -> None:
    """Delete runs; all of them are found and may go, or none is touched."""
    ctx = click.get_current_context()
    if ctx.parent is not None and ctx.get_parameter_source("out") is ParameterSource.DEFAULT:
        out = ctx.parent.params["out"]  # `headway runs --out X rm RUN`
    found = list({run.root: run for run in (find_run(name, out) for name in names)}.values())
    for run in found:
        refuse_removal(run)
    sizes = {run.name: count_bytes(run) for run in found}
    if not dry_run and not yes:
        _ask(sizes)
    for run in found:
        if not dry_run:
            remove_run(run)
        if not as_json:
            what = "ui/would-remove" if dry_run else "ui/removed"
            click.echo(say(what, name=clean_text(run.name), size=size(sizes[run.name])))
    if as_json:
        rows = [{"name": name, "bytes": num} for name, num in sizes.items()]
        echo_json({"schema": "runs-rm/1", "dry_run": dry_run, "removed": rows})


def _ask(sizes: Mapping[str, int]) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("ui/rm-needs-yes", runs=" ".join(sizes))
    for name, num_bytes in sizes.items():
        click.echo(say("ui/would-remove", name=clean_text(name), size=size(num_bytes)), err=True)
    click.confirm(say("ui/ask-rm", num=len(sizes), size=size(sum(sizes.values()))), abort=True, err=True)
