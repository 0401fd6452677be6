"""Serve the board on loopback until Ctrl-C."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn

from headway.errors import UsageError
from headway.ui.board.app import make_app
from headway.ui.board.auth import OPEN, Gate

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_MOST_CLIENTS: Final = 512
_MOST_HEADER: Final = 16 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the board listens."""

    host: str
    port: int

    @property
    def address(self) -> str:
        """The beginning of its addresses."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def hosts_of(place: Place) -> frozenset[str]:
    """Return the Host headers that mean this board."""
    names = {place.host} | (set(LOOPBACK) if place.host in LOOPBACK else set())
    written = {f"[{name}]" if ":" in name else name for name in names}
    return frozenset(f"{name.lower()}:{place.port}" for name in written) | (
        frozenset(name.lower() for name in written) if place.port == 80 else frozenset()
    )


def bind(host: str, port: int) -> tuple[socket.socket, Place]:
    """Take the port.

    Raises:
        UsageError: somebody else has it, or there is no such address here.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # Before the address is printed: whoever types it at once waits for the server and is not refused.
        listener.listen(128)
    except OSError as err:
        listener.close()
        raise UsageError("board/port-taken", host=host, port=port, why=err.strerror or str(err)) from err
    return listener, Place(host=host, port=listener.getsockname()[1])


def serve_board(
    out: Path,
    *,
    token: str,
    host: str,
    port: int,
    has_form: bool = False,
    ready: Callable[[Place, Callable[[], str]], None],
) -> None:
    """Serve until interrupted.

    Args:
        ready: called once with the place and a function that returns a fresh address to open.
    """
    listener, place = bind(host, port)
    gate = Gate(
        make_app(out, has_form=has_form), token=token, hosts=hosts_of(place), cookie=f"headway-board-{place.port}"
    )
    config = uvicorn.Config(
        gate,
        log_config=None,
        access_log=False,  # addresses hold one-time codes
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_CLIENTS,
        h11_max_incomplete_event_size=_MOST_HEADER,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=1,
        http="h11",
        ws="none",
        lifespan="off",
    )
    server = uvicorn.Server(config)
    ready(place, lambda: f"{place.address}{OPEN}{gate.make_code()}")
    with listener:
        asyncio.run(server.serve(sockets=[listener]))


def offer_addresses(make: Callable[[], str], say_it: Callable[[str], None]) -> None:
    """Print another one-time address whenever Enter is pressed."""

    def listen() -> None:
        for _ in sys.stdin:
            say_it(make())

    if sys.stdin is not None and sys.stdin.isatty():
        threading.Thread(target=listen, daemon=True).start()
