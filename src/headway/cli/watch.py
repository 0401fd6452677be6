"""`headway watch`: a run, live, from its directory."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.options import RUN, SHOWN_JSON, SHOWN_RUNS
from headway.telemetry import find_run
from headway.ui.terminal.follow import follow, show
from headway.ui.terminal.watch import View, look, one_line, render


@command("watch", help="ui/help-watch")
@RUN
@SHOWN_RUNS
@option("--once", is_flag=True, help="ui/opt-once")
@SHOWN_JSON
def watch(run: str | None, out: Path, once: bool, as_json: bool) -> None:
    """Show a run until it ends."""
    is_live = not (once or as_json) and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if is_live:
        # A full-screen app takes a second to import that a plain line need not pay.
        from headway.ui.terminal.live import run_live

        run_live(out, find_run(run, out) if run is not None or not out.is_dir() else None, is_ascii=not _has_unicode())
        return
    found = find_run(run, out)
    if once and as_json:
        echo_json(_record(look(found)))
    elif once:
        show(render(look(found)), plain_width=100)
    elif as_json:
        follow(found, lambda view: echo_json(_record(view)), every_s=2.0)
    elif sys.stdout.isatty():
        follow(found, None, every_s=0.5)
    else:
        follow(found, lambda view: click.echo(one_line(view)), every_s=30.0)


def _has_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _record(view: View) -> dict[str, object]:
    return {"schema": "watch/1", **asdict(view.state), "log": view.log}
