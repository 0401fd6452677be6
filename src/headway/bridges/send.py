"""The child that talks to the channels: one message to all of them at once, each in a thread of its own.

Reads `{"message": …, "addresses": […], "timeout_s": 8}` from its standard input, writes one line per address as soon as
it is known how that went. Whoever started it ends it at the deadline; a channel that hangs takes no other with it.
`python -m headway.bridges.send PARENT`
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
import urllib.parse
from collections.abc import Sequence
from typing import Any, Final

from headway.bridges.message import Message
from headway.bridges.robots import ChannelError, find_robot, post, webhook
from headway.process import die_with_parent, name_process
from headway.redact import redact, remember_secrets

_WAITS_S: Final = (0.5, 1.5)
"""Before another try, where nobody has taken the message: the second one would come twice otherwise."""
_lock: Final = threading.Lock()
_HOSTS: Final = {"hooks.slack.com": "slack", "discord.com": "discord", "discordapp.com": "discord"}


def name_channel(address: str) -> str:
    """Return what a channel is called where its address must not be shown."""
    robot = find_robot(address)
    if robot is not None:
        return robot.name
    try:
        parts = urllib.parse.urlsplit(address)
    except ValueError:
        return "webhook"
    if parts.scheme in ("http", "https"):
        return _HOSTS.get(parts.hostname or "", "webhook")
    return {"mailto": "e-mail", "mailtos": "e-mail"}.get(parts.scheme.lower(), parts.scheme.lower())


def send_one(address: str, message: Message, timeout_s: float) -> None:
    """Send a message to one channel.

    Raises:
        ChannelError: it was not taken.
    """
    robot, channel = find_robot(address), name_channel(address)
    if robot is None and not _is_apprises(address):
        robot = webhook(address)
    if robot is None:
        importlib.import_module("headway.bridges.by_apprise").send(address, message, channel, timeout_s)
        return
    for wait_s in _WAITS_S:
        try:
            post(robot, message, timeout_s)
            return
        except ChannelError as err:
            if not err.can_retry:
                raise
            time.sleep(wait_s)
    post(robot, message, timeout_s)


def _is_apprises(address: str) -> bool:
    """Say whether apprise is to send: any address of its own, and web addresses of services that it knows."""
    if not address.lower().startswith(("http://", "https://")):
        return True
    if address.lower().startswith("http://"):
        return False
    return bool(importlib.import_module("headway.bridges.by_apprise").knows(address))


def _try(at: int, address: str, message: Message, timeout_s: float) -> None:
    began = time.monotonic()
    result: dict[str, Any] = {"at": at, "ok": True}
    try:
        send_one(address, message, timeout_s)
    except ChannelError as err:
        facts = {name: redact(str(fact)) for name, fact in err.facts.items()}
        result = {"at": at, "ok": False, "code": err.code, "facts": facts}
    except Exception as err:  # border: a library's own trouble is this channel's trouble
        why = redact(f"{type(err).__name__}: {err}")[:300]
        result = {
            "at": at,
            "ok": False,
            "code": "alert/refused",
            "facts": {"channel": name_channel(address), "why": why},
        }
    with _lock:
        print(json.dumps({**result, "seconds": round(time.monotonic() - began, 2)}), flush=True)  # noqa: T201


def main(argv: Sequence[str]) -> int:
    """Send what the standard input says."""
    die_with_parent(int(argv[0]))
    name_process("headway-send")
    order = json.load(sys.stdin)
    addresses, message = order["addresses"], Message(**order["message"])
    remember_secrets({f"{at}_WEBHOOK_URL": address for at, address in enumerate(addresses)})
    threads = [
        threading.Thread(target=_try, args=(at, address, message, order["timeout_s"]), daemon=True)
        for at, address in enumerate(addresses)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
