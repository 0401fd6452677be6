"""`headway export`: metrics for other tools."""

from __future__ import annotations

from pathlib import Path

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.options import RUN, SHOWN_DRY_RUN, SHOWN_JSON, SHOWN_RUNS
from headway.messages import say
from headway.telemetry import find_run, refuse_links
from headway.ui.export import FORMATS, Format, export_run, list_targets


@command("export", help="ui/help-export")
@RUN
@option("--format", "kind", type=click.Choice(FORMATS), default="csv", show_default=True, help="ui/opt-format")
@option("--to", type=click.Path(path_type=Path, file_okay=False), help="ui/opt-to")
@SHOWN_RUNS
@SHOWN_DRY_RUN
@SHOWN_JSON
def export(run: str | None, kind: Format, to: Path | None, out: Path, dry_run: bool, as_json: bool) -> None:
    """Write metrics and validations as files."""
    found = find_run(run, out)
    place = to or found.root / "export" / kind
    refuse_links(found.root, place)
    files = list_targets(found, kind, place)
    if dry_run and as_json:
        echo_json({"schema": "export/1", "dry_run": True, "format": kind, "files": [str(file) for file in files]})
        return
    if dry_run:
        for file in files:
            click.echo(say("ui/would-write", path=file))
        return
    num = export_run(found, kind, place)
    if as_json:
        written = [str(file) for file in files if file.exists()]
        echo_json({"schema": "export/1", "format": kind, "points": num, "files": written})
    else:
        click.echo(say("ui/exported", num=num, path=place))
