"""One message, as every channel gets it."""

from __future__ import annotations

import socket
import time
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from headway.messages import say
from headway.redact import redact

Level = Literal["info", "success", "warning", "failure"]
_MOST: Final = 3500
"""Characters of a body; the strictest robot takes 2,048 bytes and is sent less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A title, a text, and the same for programs."""

    title: str
    body: str
    level: Level = "info"
    record: dict[str, Any] = field(default_factory=dict)
    """What a webhook gets beside the text. Any: plain JSON."""

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return asdict(self)


def make_message(kind: str, level: Level, *, run: str, lines: list[str], **record: Any) -> Message:
    """Return a message in the language in use, secrets hidden. Any: plain JSON."""
    title = say("alert/title", run=run, what=say(f"alert/word-{kind}"))
    told = {"schema": "alert/1", "kind": kind, "run": run, "host": socket.gethostname(), "t": round(time.time(), 3)}
    body = redact("\n".join(lines).strip())
    return Message(title=redact(title), body=_cut(body), level=level, record={**told, **record})


def test_message() -> Message:
    """Return what `headway alert test` sends."""
    return make_message("test", "info", run="test", lines=[say("alert/test"), socket.gethostname()])


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"
