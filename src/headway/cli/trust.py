"""`headway trust`: let a folder or an interpreter that a file names run."""

from __future__ import annotations

import os
from pathlib import Path

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.options import JSON
from headway.config import forget as forget_path
from headway.config import read_trusted
from headway.config import trust as trust_path
from headway.errors import UsageError
from headway.messages import say


@command("trust", help="cli/trust-help")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@option("--forget", is_flag=True, help="cli/option-forget")
@option("--dry-run", is_flag=True, help="cli/option-trust-dry-run")
@JSON
def trust(path: Path | None, forget: bool, dry_run: bool, as_json: bool) -> None:
    """See the message `cli/trust-help`."""
    if path is None:
        known = read_trusted()
        if as_json:
            echo_json({"schema": "trust/1", "paths": [str(one) for one in known]})
            return
        for one in known:
            click.echo(one)
        if not known:
            click.echo(say("cli/trust-none"), err=True)
        return
    real = Path(os.path.realpath(path))
    if not forget and not real.exists():
        raise UsageError("cli/path-missing", path=path, folder=real.parent)
    is_known = real in read_trusted()
    if forget and not is_known:
        raise UsageError("cli/not-trusted", path=real)
    if not dry_run:
        if forget:
            forget_path(real)
        else:
            trust_path(real)
    if as_json:
        echo_json({"schema": "trust/1", "path": str(real), "is_trusted": not forget, "dry_run": dry_run})
        return
    click.echo(say("cli/trust-forgotten" if forget else "cli/trusted", path=real))
