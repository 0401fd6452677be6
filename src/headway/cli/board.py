"""`headway board`: runs in a browser."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Callable
from pathlib import Path

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.options import SHOWN_JSON, SHOWN_RUNS
from headway.messages import say
from headway.ui.board import Place, find_token, offer_addresses, serve_board

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@command("board", help="board/help")
@SHOWN_RUNS
@option("--port", type=click.IntRange(0, 65535), default=8787, help="board/opt-port")
@option("--host", default="127.0.0.1", help="board/opt-host")
@option("--open", "opening", type=click.Choice(["yes", "no"]), default="no", show_default=True, help="board/opt-open")
@option(
    "--new-run", "form", type=click.Choice(["yes", "no"]), default="no", show_default=True, help="board/opt-new-run"
)
@SHOWN_JSON
def board(out: Path, port: int, host: str, opening: str, form: str, as_json: bool) -> None:
    """See the message `board/help`."""
    if host not in _LOOPBACK:
        click.echo(say("board/not-loopback", host=host), err=True)

    def ready(place: Place, make: Callable[[], str]) -> None:
        address = make()
        if as_json:
            echo_json({"schema": "board/1", "address": place.address, "open": address, "runs": str(out)})
        else:
            click.echo(say("board/serving", out=out, address=address))
            click.echo(say("board/another"), err=True)
        offer_addresses(make, click.echo)
        if opening == "yes":
            webbrowser.open(address)

    token = find_token(_state_folder())
    serve_board(out, token=token, host=host, port=port, has_form=form == "yes", ready=ready)


def _state_folder() -> Path:
    """Return where the board keeps its token."""
    given = os.environ.get("XDG_STATE_HOME", "")
    return (Path(given) if os.path.isabs(given) else Path.home() / ".local" / "state") / "headway"
