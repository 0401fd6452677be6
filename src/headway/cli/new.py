"""`headway new`: a project folder in which a guide's own commands work, or a recipe of one's own."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from headway.cli.bilingual import command, option
from headway.cli.refusals import refuse_words
from headway.guide import make_project, plan_project
from headway.messages import say
from headway.task import make_recipe, plan_recipe


@command("new", help="cli/new-help")
@click.argument("recipe", required=False, metavar="[RECIPE]")
@click.argument("folder", type=click.Path(path_type=Path), required=False, metavar="FOLDER")
@option("--recipe", "name", metavar="NAME", help="cli/option-new-recipe")
@option("--dry-run", is_flag=True, help="cli/option-dry-run-files")
@click.pass_context
def new(context: click.Context, recipe: str | None, folder: Path | None, name: str | None, dry_run: bool) -> None:
    """See the message `cli/new-help`."""
    for parameter, given in zip(context.command.params, (name or recipe, folder or (name and recipe)), strict=False):
        if given is None:
            raise click.MissingParameter(ctx=context, param=parameter)
    if name is None:
        assert recipe is not None and folder is not None
        paths = list(plan_project(recipe, folder)) if dry_run else make_project(recipe, folder)
        done = say("cli/new-made", folder=folder, recipe=recipe, path=shlex.quote(str(folder)))
    elif folder is not None:
        raise refuse_words(context, [str(folder)])
    else:
        place = Path(str(recipe))
        paths = list(plan_recipe(name, place)) if dry_run else make_recipe(name, place)
        done = say("cli/new-recipe-made", folder=place, path=shlex.quote(str(place)))
    for path in paths:
        click.echo(str(path))
    if not dry_run:
        click.echo(done, err=True)
