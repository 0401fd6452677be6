"""`headway note`: words of one's own beside a run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.options import SHOWN_DRY_RUN, SHOWN_JSON, SHOWN_RUNS
from headway.messages import say
from headway.telemetry import changed_note, find_run, read_note, write_note
from headway.ui.text import clean_text


@command("note", help="board/note-help")
@click.argument("run")
@click.argument("text", required=False, metavar="[NOTE]")
@option("--tag", "add", multiple=True, help="board/note-opt-tag")
@option("--untag", "drop", multiple=True, help="board/note-opt-untag")
@SHOWN_RUNS
@SHOWN_DRY_RUN
@SHOWN_JSON
def note(
    run: str, text: str | None, add: tuple[str, ...], drop: tuple[str, ...], out: Path, dry_run: bool, as_json: bool
) -> None:
    """Write or show the note and the tags of a run."""
    found = find_run(run, out)
    before = read_note(found)
    after = changed_note(before, text, add, drop)
    if after != before and not dry_run:
        write_note(found, after)
    if as_json:
        echo_json({"schema": "note/1", "run": found.name, "dry_run": dry_run, **asdict(after)})
        return
    if after.tags:
        click.echo(say("board/note-tags", tags=", ".join(map(clean_text, after.tags))))
    click.echo(clean_text(after.text) if after.text else say("board/note-none"))
