"""Ports for programs that open their own: free now, out of the way of outgoing connections, and ours among Headways."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path
from typing import Final

from headway.launch.claims import Claims

_LOWEST: Final = 20_000
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TRIES: Final = 200


def choose_port(claims: Claims) -> int:
    """Return a free port and claim it.

    The socket cannot be handed to a foreign program, so it is closed again. Below the range from which the kernel
    takes ports for outgoing connections nobody else gets it by chance, and other runs of Headway see the claim.
    """
    highest = _first_ephemeral() - 1
    choices = random.Random()
    for _ in range(_TRIES):
        port = choices.randint(_LOWEST, max(_LOWEST + 100, highest))
        if not _is_free(port):
            continue
        if claims.take(f"port-{port}") is None:
            return port
    with socket.create_server(("127.0.0.1", 0)) as listener:  # a crowded machine: whatever the kernel has
        return int(listener.getsockname()[1])


def _is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.socket() as trial:
        trial.bind(("0.0.0.0", port))
        return True
    return False


def _first_ephemeral() -> int:
    try:
        return int(_RANGE.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return 32_768
