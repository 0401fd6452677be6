"""`headway completion bash|zsh|fish`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from headway.cli.bilingual import argument, command


@command("completion", help="cli/completion-help")
@argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "headway", "_HEADWAY_COMPLETE").source())
