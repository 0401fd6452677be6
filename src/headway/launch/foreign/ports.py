"""Ports for programs that open their own: free now, out of the way of outgoing connections, and ours among Headways."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path
from typing import Final

_LOWEST: Final = 20_000
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TRIES: Final = 200
_LISTEN: Final = "0A"


class PortHold:
    """A port chosen for one attempt.

    The listening socket cannot be handed to a foreign program, so it is closed again. Below the range from which the
    kernel takes ports for outgoing connections nobody else gets it by chance, and other runs of Headway, of any user,
    see a name in the abstract socket space, which ends with its holder and leaves no file.
    """

    def __init__(self) -> None:
        self._mark: socket.socket | None = None
        self.port = 0

    def renew(self) -> int:
        """Let go of the port before and return another one."""
        self.release()
        highest = max(_LOWEST + 100, _first_ephemeral() - 1)
        for _ in range(_TRIES):
            port = random.randint(_LOWEST, highest)
            if port != self.port and _is_free(port) and (mark := _mark(port)) is not None:
                self._mark, self.port = mark, port
                return port
        with socket.create_server(("127.0.0.1", 0)) as listener:  # a crowded machine: whatever the kernel has
            self.port = int(listener.getsockname()[1])
        return self.port

    def release(self) -> None:
        """Let go of the port."""
        if self._mark is not None:
            self._mark.close()
            self._mark = None


def is_open_to_all(port: int) -> bool | None:
    """Say whether a port is listened to on every interface; none: nobody listens on it yet."""
    listening = []
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]:
                place, state = line.split()[1], line.split()[3]
                if state == _LISTEN and int(place.rpartition(":")[2], 16) == port:
                    listening.append(place.rpartition(":")[0])
    return any(not address.strip("0") for address in listening) if listening else None


def _mark(port: int) -> socket.socket | None:
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        mark.bind(f"\0headway-port-{port}")
    except OSError:
        mark.close()
        return None
    return mark


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
