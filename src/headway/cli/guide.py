"""The hidden command behind the files of `headway new`: one of a guide's own commands."""

from __future__ import annotations

import click

from headway.cli.bilingual import command
from headway.errors import UsageError
from headway.guide import run_command
from headway.task import RECIPES
from headway.ui.retype import remember_words


@command(
    "guide",
    help="cli/line-new",
    hidden=True,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    add_help_option=False,
)
@click.argument("recipe")
@click.argument("entry")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
def guide(recipe: str, entry: str, argv: tuple[str, ...]) -> int:
    """Run one of a guide's commands."""
    if recipe not in RECIPES:
        raise UsageError("recipes/unknown", name=recipe, known=", ".join(sorted(RECIPES)))
    return run_command(recipe, entry, argv, lambda program, words: remember_words(words, program=program))
