"""`headway alert`: try the channels that alerts go to."""

from __future__ import annotations

import os

import click

from headway.bridges import Delivery, deliver, find_addresses, refuse_unset, test_message
from headway.cli.bilingual import echo_json, group, option
from headway.cli.options import SHOWN_JSON
from headway.errors import CheckError, UsageError
from headway.messages import hint, say
from headway.ui.retype import paste_ready

_DEADLINE_S = 20.0


@group("alert", help="alert/help")
def alert() -> None:
    """See the message `alert/help`."""


@alert.command("test", help="alert/test-help")
@option("--to", "given", multiple=True, help="alert/option-to")
@SHOWN_JSON
def test(given: tuple[str, ...], as_json: bool) -> None:
    """See the message `alert/test-help`."""
    refuse_unset(given, os.environ)
    addresses = find_addresses(given, os.environ if not given else {**os.environ, "HEADWAY_ALERT_TO": ""})
    if not addresses:
        raise UsageError("alert/no-channel")
    found = deliver(test_message(), addresses, deadline_s=_DEADLINE_S)
    failed = [one for one in found if not one.is_sent]
    if as_json:
        echo_json({"schema": "alert-test/1", "channels": [_plain(one) for one in found]}, indent=2)
    else:
        for one in found:
            _show(one)
    if failed:
        raise CheckError("alert/test-failed", failed=len(failed), num=len(found))


def _show(one: Delivery) -> None:
    if one.is_sent:
        click.echo(say("alert/sent", channel=one.channel, seconds=f"{one.seconds:.1f}"))
        return
    click.echo(f"{say(one.code, **one.facts)} [{one.code}]")
    click.echo(say("launch/hint", text=paste_ready(hint(one.code, **one.facts))))


def _plain(one: Delivery) -> dict[str, object]:
    text = "" if one.is_sent else say(one.code, **one.facts)
    return {"channel": one.channel, "sent": one.is_sent, "seconds": one.seconds, "code": one.code, "text": text}
