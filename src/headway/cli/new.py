"""`headway new`: a project folder in which a guide's own commands work."""

from __future__ import annotations

from pathlib import Path

import click

from headway.cli.bilingual import command, option
from headway.guide import make_project, plan_project
from headway.messages import say


@command("new", help="cli/new-help")
@click.argument("recipe")
@click.argument("folder", type=click.Path(path_type=Path))
@option("--dry-run", is_flag=True, help="cli/option-dry-run-files")
def new(recipe: str, folder: Path, dry_run: bool) -> None:
    """See the message `cli/new-help`."""
    paths = list(plan_project(recipe, folder)) if dry_run else make_project(recipe, folder)
    for path in paths:
        click.echo(str(path))
    if not dry_run:
        click.echo(say("cli/new-made", folder=folder, recipe=recipe), err=True)
