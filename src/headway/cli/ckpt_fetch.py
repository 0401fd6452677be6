"""`headway ckpt fetch`: bring a run back from where its checkpoints are copied to."""

from __future__ import annotations

from pathlib import Path

import click

from headway.bridges.mirror import fetch_run, open_store, plan_fetch
from headway.cli.bilingual import command, echo_json, option
from headway.config import parse_mirror
from headway.errors import UsageError
from headway.messages import say
from headway.telemetry import RunDir
from headway.units import size


@command("fetch", help="mirror/help-fetch")
@click.argument("address", metavar="ADDRESS/RUN")
@option("--runs", "runs", default="runs", type=click.Path(path_type=Path), help="mirror/option-runs")
@option("--step", type=click.IntRange(min=0), help="mirror/option-step")
@option("--dry-run", is_flag=True, help="checkpoint/option-dry-run")
@option("--json", "as_json", is_flag=True, help="checkpoint/option-json")
def fetch_command(address: str, runs: Path, step: int | None, dry_run: bool, as_json: bool) -> None:
    """See the message `mirror/help-fetch`."""
    place = parse_mirror(address)
    name = Path(place.path).name if place is not None else ""
    if place is None or name in ("", ".", ".."):
        raise UsageError("mirror/bad-address", given=address)
    store, run = open_store(place), RunDir(runs / name)
    if dry_run:
        newest = plan_fetch(store, step)[0]
        if as_json:
            echo_json({"schema": "fetch/1", "dry_run": True, "run": str(run.root), "checkpoint": newest}, indent=2)
        else:
            click.echo(say("mirror/would-fetch", name=newest, run=run.root))
        return
    done = fetch_run(store, run, step=step)
    for damaged, why in done.damaged:
        click.echo(say("mirror/damaged", name=damaged, why=why), err=True)
    if as_json:
        facts = {"step": done.step, "bytes": done.bytes, "damaged": [one for one, _ in done.damaged]}
        echo_json({"schema": "fetch/1", "dry_run": False, "run": str(run.root), **facts}, indent=2)
        return
    click.echo(say("mirror/fetched", step=done.step, size=size(done.bytes), run=run.root))
    click.echo(say("mirror/next", run=run.root), err=True)
