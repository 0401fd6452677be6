"""Messages between supervisor and nursery: one JSON object a packet, open files travelling beside it."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from typing import Any, Final

_PACKET_BYTES: Final = 1 << 17
_MOST_FILES: Final = 8


def pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a packet link."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(link: socket.socket, message: Mapping[str, Any], files: Sequence[int] = ()) -> None:
    """Send one message with open files; wait until there is room for it."""
    socket.send_fds(link, [json.dumps(message).encode()], list(files))


def send_now(link: socket.socket, message: Mapping[str, Any], files: Sequence[int] = ()) -> None:
    """Send one message if there is room for it.

    Raises:
        BlockingIOError: there is none, for the other end has not taken what was sent before.
    """
    socket.send_fds(link, [json.dumps(message).encode()], list(files), socket.MSG_DONTWAIT)


def receive(link: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Return the next message and its files; None when the other end is gone."""
    try:
        data, files, _, _ = socket.recv_fds(link, _PACKET_BYTES, _MOST_FILES, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return None
    return (json.loads(data), files) if data else None
