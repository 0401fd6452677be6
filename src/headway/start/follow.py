"""A further node of a run: find the leader, prove that we belong to it, follow it to the end, return after a fault."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, MutableMapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import headway
from headway.errors import CheckError, UsageError
from headway.launch.nodes.follower import Farewell, Follower
from headway.launch.nodes.leader import RETURN_S, Hello
from headway.launch.nodes.link import Link, LinkError, greet_leader
from headway.launch.nodes.rendezvous import SECRET_NAME, Meeting, read_place, wait_for_meeting
from headway.launch.signals import SignalInbox
from headway.machine import apply_visible
from headway.messages import say
from headway.start.devices import read_gpus
from headway.start.nursery import Tell

_CONNECT_S: Final = 5.0
_AGAIN_S: Final = 0.2
_MOST_SECRET: Final = 4096
_TOKEN: Final = secrets.token_hex(8)
"""Of this process, so that the leader knows it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowWish:
    """What a further node is told."""

    leader: str | None = None
    meet: Path | None = None
    secret_fd: int | None = None
    index: int | None = None
    cpus: int | None = None
    wait_s: float = 300.0


def follow(wish: FollowWish, tell: Tell) -> int:
    """Follow the leader of a run until it is over; return the run's exit code, 6 where the leader is lost."""
    find = _finder(wish)
    nursery, index = None, wish.index
    with SignalInbox() as inbox:
        link = _join(find, wish.wait_s, is_back=False)
        while True:
            assert link is not None
            link.send("hello", **asdict(_hello(index, wish.cpus)))
            follower = Follower(link, inbox, nursery)
            farewell = follower.serve()
            link.close()
            nursery, index = follower.nursery, follower.index or index
            if farewell.exit_code is not None:
                return _end(farewell, tell)
            tell(say("nodes/link-lost", seconds=f"{RETURN_S:g}"))
            link = _join(find, RETURN_S, is_back=True)
            if link is None:
                if nursery is not None:
                    nursery.close()
                tell(say("nodes/leader-lost"))
                return 6


def _end(farewell: Farewell, tell: Tell) -> int:
    assert farewell.exit_code is not None
    if farewell.exit_code == 3 and farewell.why.startswith("nodes/"):
        raise CheckError(farewell.why, **(farewell.facts or {}))
    tell(say("nodes/over", exit=farewell.exit_code))
    return farewell.exit_code


def _finder(wish: FollowWish, environ: MutableMapping[str, str] = os.environ) -> Callable[[float], Meeting]:
    """Return what finds the leader, within so many seconds."""
    if (wish.leader is None) == (wish.meet is None):
        raise UsageError("nodes/no-leader")
    if wish.meet is not None:
        path = wish.meet
        return lambda timeout_s: wait_for_meeting(path, timeout_s)
    assert wish.leader is not None
    secret = environ.pop(SECRET_NAME, "")  # ranks are not to inherit it
    if wish.secret_fd is not None:
        with open(wish.secret_fd, "rb", buffering=0, closefd=False) as file:
            secret = file.readline(_MOST_SECRET).decode("ascii", "replace").strip()
    if not secret:
        raise UsageError("nodes/no-secret", name=SECRET_NAME)
    address, port = read_place(wish.leader)
    return lambda timeout_s: Meeting(address=address, port=port, secret=secret)


def _join(find: Callable[[float], Meeting], timeout_s: float, *, is_back: bool) -> Link | None:
    """Return a proven link; None: the leader that we had is gone.

    Raises:
        CheckError: nobody has answered in time, or whoever did does not know the secret.
    """
    until, why = time.monotonic() + timeout_s, ""
    while time.monotonic() < until:
        meeting = find(max(0.1, until - time.monotonic()))
        sock = None
        try:
            sock = socket.create_connection((meeting.address, meeting.port), timeout=_CONNECT_S)
            return greet_leader(sock, meeting.secret.encode())
        except ConnectionRefusedError as err:
            if is_back:  # its machine answers, and nobody listens: its supervisor has ended
                return None
            why = err.strerror or str(err)
        except LinkError as err:
            raise CheckError("nodes/not-proven", address=meeting.address, port=meeting.port, why=str(err)) from err
        except OSError as err:
            why = err.strerror or str(err)
        if sock is not None:
            sock.close()
        time.sleep(_AGAIN_S)
    if is_back:
        return None
    raise CheckError("nodes/no-answer", seconds=f"{timeout_s:g}", why=why)


def _hello(index: int | None, cpus: int | None) -> Hello:
    """Return what this node tells the leader of itself."""
    gpus = apply_visible(read_gpus(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    return Hello(
        index=index,
        host=socket.gethostname(),
        version=headway.__version__,
        gpus=tuple(str(gpu.physical) for gpu in gpus),
        cpus=cpus,
        token=_TOKEN,
    )
