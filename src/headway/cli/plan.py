"""`headway plan`: how a run would be laid out on this machine."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from headway.cli.check import show_notes
from headway.cli.shape import command, option
from headway.cli.source import load_words
from headway.machine import inspect_machine
from headway.messages import say
from headway.plan import Plan, label_text, make_plan, origin_text, value_text


@command(
    "plan", help="plan/help", context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[SOURCE] [KEY=VALUE]…")
@option("--json", "as_json", is_flag=True, help="plan/help-json")
def plan(words: tuple[str, ...], as_json: bool) -> None:
    """See the message `plan/help`."""
    loaded = load_words(words)
    machine = inspect_machine(Path(loaded.config.out), config=loaded.config)
    made = make_plan(loaded, machine, loaded.recipe)
    if as_json:
        click.echo(json.dumps(made.to_json(), ensure_ascii=False, indent=2))
        return
    show_notes((("warn", code, facts) for code, facts in loaded.warnings), Console(stderr=True, highlight=False))
    show_plan(made, loaded.recipe.name, Console(highlight=False))
    click.echo(say("plan/next", args=shlex.join(words)).rstrip())


def show_plan(made: Plan, recipe: str, console: Console) -> None:
    """Print every quantity with where it came from, then what is probably not wanted."""
    table = Table(title=say("plan/title", recipe=recipe), title_justify="left", title_style="bold", box=None)
    table.add_column(say("plan/column-what"), style="cyan", no_wrap=True)
    table.add_column(say("plan/column-value"), overflow="fold")
    table.add_column(say("plan/column-origin"), style="dim", overflow="fold")
    for row in made.rows:
        table.add_row(label_text(row), value_text(row), origin_text(row))
    console.print(table)
    console.print()
    show_notes((("warn", warning.code, warning.facts) for warning in made.warnings), console)
