"""Where the nodes of a run meet: the leader's address, its port and the secret of the run."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from headway.errors import CheckError, UsageError
from headway.telemetry import RunDir

SECRET_NAME: Final = "HEADWAY_NODE_SECRET"
"""Environment variable of the secret, where whoever submits a run must know it before the run exists."""
_POLL_S: Final = 0.1
_BACKLOG: Final = 128
_LEAST_SECRET: Final = 16
_PLACE: Final = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[^\s:\[\]]+))(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """Where the leader of a run is, and what proves that one belongs to it."""

    address: str
    port: int
    secret: str

    def write(self, path: Path) -> None:
        """Write it where only this user can read it; it is there in full or not at all."""
        told = {"schema": "nodes/1", "address": self.address, "port": self.port, "secret": self.secret}
        _write_private(path, told)

    @staticmethod
    def call_off(path: Path, exit_code: int) -> None:
        """Say in its place that the leader has ended before all were there: whoever waits for it need not."""
        _write_private(path, {"schema": "nodes/1", "over": exit_code})

    @classmethod
    def read(cls, path: Path) -> Meeting | None:
        """Read it; none: it is not there. A file that others could have written or read is refused."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        with open(fd, encoding="utf-8") as file:
            status = os.fstat(fd)
            if status.st_uid != os.geteuid() or status.st_mode & 0o077:
                raise UsageError("nodes/open-file", path=path, mode=f"{status.st_mode & 0o777:o}")
            try:
                found = json.load(file)
                if "over" in found:
                    raise CheckError("nodes/called-off", exit=int(found["over"]))
                return cls(address=str(found["address"]), port=int(found["port"]), secret=str(found["secret"]))
            except (ValueError, KeyError, TypeError) as err:
                raise UsageError("nodes/bad-file", path=path) from err


def _write_private(path: Path, told: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        json.dump(told, file)
    part.replace(path)


def meeting_file(run: RunDir) -> Path:
    """Return where a run says who leads it, for nodes that come back."""
    return run.root / "nodes.json"


def new_secret(environ: MutableMapping[str, str] = os.environ) -> str:
    """Return the secret that was given for this run, which ranks are not to inherit, or a fresh one."""
    given = environ.pop(SECRET_NAME, "")
    if given and len(given) < _LEAST_SECRET:
        raise UsageError("nodes/short-secret", name=SECRET_NAME, least=_LEAST_SECRET)
    return given or secrets.token_hex(32)


def open_listener(address: str, port: int = 0, *, is_public: bool = False) -> socket.socket:
    """Listen on one interface of this node.

    Raises:
        UsageError: the address is not an interface of this node, or one that the whole internet may reach.
    """
    host = resolve(address)
    number = ipaddress.ip_address(host)
    if number.is_unspecified or (number.is_global and not is_public):
        raise UsageError("nodes/public-address", address=host)
    try:
        family = socket.AF_INET6 if number.version == 6 else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as err:
        raise UsageError("nodes/no-listener", address=host, port=port, why=err.strerror or str(err)) from err


def resolve(host: str) -> str:
    """Return the number of an address; names are asked for IPv4 first, as gloo and NCCL do.

    Raises:
        UsageError: nobody knows the name.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as err:
        raise UsageError("nodes/unknown-host", host=host, why=str(err)) from err
    found.sort(key=lambda one: one[0] != socket.AF_INET)
    return str(found[0][4][0])


def read_place(text: str) -> tuple[str, int]:
    """Read `HOST`, `HOST:PORT` or `[IPV6]:PORT`; no port is 0."""
    found = _PLACE.fullmatch(text)
    if found is None or int(found["port"] or 0) > 65_535:
        raise UsageError("nodes/bad-place", value=text)
    return str(found["six"] or found["host"]), int(found["port"] or 0)


def address_towards(host: str) -> str:
    """Return this node's address on the way to another one; nothing is sent."""
    there = resolve(host)
    family = socket.AF_INET6 if ":" in there else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((there, 9))
            return str(probe.getsockname()[0])
        except OSError as err:
            raise UsageError("nodes/no-route", host=host, why=err.strerror or str(err)) from err


def own_address() -> str:
    """Return this node's address where nobody says to whom: what its name means, or else its first private one."""
    with contextlib.suppress(UsageError):
        named = ipaddress.ip_address(resolve(socket.gethostname()))
        if not named.is_loopback:
            return str(named)
    for one in own_addresses():
        number = ipaddress.ip_address(one)
        if number.version == 4 and number.is_private and not (number.is_loopback or number.is_link_local):
            return one
    return "127.0.0.1"


def own_addresses() -> list[str]:
    """Return all addresses of this node."""
    inet = (socket.AF_INET, socket.AF_INET6)
    return [
        one.address.partition("%")[0]
        for all_of in psutil.net_if_addrs().values()
        for one in all_of
        if one.family in inet
    ]


def interface_of(address: str) -> str | None:
    """Return the network interface that has an address of this node."""
    for name, all_of in psutil.net_if_addrs().items():
        if any(one.address.partition("%")[0] == address for one in all_of):
            return str(name)
    return None


def network_variables(address: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what leads the collectives of gloo and NCCL over an interface; what the user has set stays.

    Without it gloo takes what the node's own name means, on many systems 127.0.1.1, and NCCL the first interface.
    """
    name = interface_of(address)
    if name is None:
        return {}
    names = {"GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": f"={name}"}
    return {variable: value for variable, value in names.items() if not environ.get(variable)}


def is_own(host: str) -> bool:
    """Say whether a name or an address means this node."""
    if host in ("localhost", socket.gethostname(), socket.gethostname().partition(".")[0], socket.getfqdn()):
        return True
    with contextlib.suppress(UsageError):
        return resolve(host) in own_addresses()
    return False


def wait_for_meeting(path: Path, timeout_s: float, is_over: Callable[[], bool] = lambda: False) -> Meeting:
    """Return what the leader writes into a file, when it has.

    Raises:
        UsageError: it was not there in time.
    """
    until = time.monotonic() + timeout_s
    while time.monotonic() < until and not is_over():
        found = Meeting.read(path)
        if found is not None:
            return found
        time.sleep(_POLL_S)
    raise UsageError("nodes/no-leader-file", path=path, seconds=f"{timeout_s:.0f}")
