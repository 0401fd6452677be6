"""Asks an ASGI application without a socket: any header, any path, as it is."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What came back."""

    code: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")


def ask(app: Any, path: str, *, method: str = "GET", host: str = "127.0.0.1:8787", **headers: str) -> Answer:
    """Send one request; names of headers have `_` for `-`."""
    target, _, query = path.partition("?")
    listed = [(b"host", host.encode("latin-1"))] if host else []
    listed += [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": target,
        "raw_path": target.encode("utf-8", "surrogateescape"),
        "query_string": query.encode(),
        "root_path": "",
        "headers": listed,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8787),
    }
    return asyncio.run(_ask(app, scope))


async def _ask(app: Any, scope: dict[str, Any]) -> Answer:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = next(one for one in sent if one["type"] == "http.response.start")
    headers = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
    body = b"".join(one.get("body", b"") for one in sent if one["type"] == "http.response.body")
    return Answer(
        start["status"], headers, gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
    )
