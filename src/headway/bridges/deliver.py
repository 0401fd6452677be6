"""Let a child send one message to all channels, and take down what each answered until the deadline."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from headway.bridges.message import Message
from headway.bridges.send import name_channel
from headway.process import DETACHED, TAG_NAME

_KILL_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How one channel took a message."""

    channel: str
    is_sent: bool
    seconds: float
    code: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    """Any: plain JSON."""


class Sending:
    """A child that sends."""

    def __init__(self, message: Message, addresses: Sequence[str], *, deadline_s: float) -> None:
        self._addresses = list(addresses)
        self._deadline_s = deadline_s
        self._began = time.monotonic()
        command = [sys.executable, "-P", "-m", "headway.bridges.send", str(os.getpid())]
        order = {"message": message.to_json(), "addresses": self._addresses, "timeout_s": max(1.0, deadline_s - 1.5)}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=outside_environ(),
            cwd="/",
            start_new_session=True,
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(order).encode())
            self._process.stdin.close()

    def is_over(self) -> bool:
        """Say whether it has ended or must."""
        return self._process.poll() is not None or time.monotonic() - self._began > self._deadline_s

    def finish(self) -> list[Delivery]:
        """End it and return how each channel took the message."""
        if self._process.poll() is None:
            self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILL_S)
        assert self._process.stdout is not None
        with self._process.stdout as out:
            told = [one for line in out.read(1 << 20).splitlines() if isinstance(one := _parse(line), dict)]
        by_place = {one.get("at"): one for one in told}
        return [self._delivery(address, by_place.get(at)) for at, address in enumerate(self._addresses)]

    def _delivery(self, address: str, told: dict[str, Any] | None) -> Delivery:
        channel = name_channel(address)
        if told is None:
            spent = time.monotonic() - self._began
            if self._process.returncode in (0, -9):
                facts = {"channel": channel, "seconds": f"{min(spent, self._deadline_s):.0f}"}
                return Delivery(channel=channel, is_sent=False, seconds=spent, code="alert/timeout", facts=facts)
            facts = {"channel": channel, "why": f"exit code {self._process.returncode}"}
            return Delivery(channel=channel, is_sent=False, seconds=spent, code="alert/refused", facts=facts)
        is_sent, spent = told.get("ok") is True, float(told.get("seconds", 0.0))
        code = "" if is_sent else str(told.get("code"))
        return Delivery(channel=channel, is_sent=is_sent, seconds=spent, code=code, facts=dict(told.get("facts") or {}))


def deliver(message: Message, addresses: Sequence[str], *, deadline_s: float) -> list[Delivery]:
    """Send a message and wait until every channel has answered or the deadline has passed."""
    sending = Sending(message, addresses, deadline_s=deadline_s)
    while not sending.is_over():
        time.sleep(0.02)
    return sending.finish()


def outside_environ() -> dict[str, str]:
    """Return our environment without what ties a process to a run."""
    names = (TAG_NAME, DETACHED.partition("=")[0])
    return {name: value for name, value in os.environ.items() if name not in names}


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
