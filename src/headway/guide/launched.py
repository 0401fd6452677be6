"""Guide scripts under torchrun, accelerate or torch.distributed.launch: one process leads, the others follow it.

A launcher starts the same script once a rank. Headway starts ranks of its own, so the launcher's first process asks
it for as many, and the others wait. They meet on an abstract socket: nothing is left on disk, and a leader that is
killed is noticed at once. A launcher that is killed takes both kinds with it.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

from headway.errors import HeadwayError, UsageError

_OURS = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE")
_FAMILIES = ("MASTER_", "ROLE_", "TORCHELASTIC_", "ACCELERATE_")
_LOOK_S = 0.2
"""How often a process looks whether its launcher still lives."""
_SPEAK_S = 10.0
"""How long a follower lets a leader that has failed go first."""
_LATE_S = 30.0
"""How long a leader that is already done waits for followers that are still starting."""


def lead_or_follow(lead: Callable[[int | None], int]) -> int:
    """Return the exit code of `lead`, which one process of a launcher's runs and the others wait for.

    `lead` is given how many processes the launcher made, or None where there is no launcher. It sees none of the
    launcher's variables, which are about ranks that do not exist here.
    """
    told = dict(os.environ)
    if "LOCAL_RANK" not in told or "WORLD_SIZE" not in told:
        return lead(None)
    try:
        ranks = int(told["WORLD_SIZE"])
        here = int(told.get("LOCAL_WORLD_SIZE", ranks))
    except ValueError as err:
        raise UsageError("guide/half-set", rank=told.get("RANK", "n/a"), ranks=told["WORLD_SIZE"]) from err
    if here != ranks:
        raise UsageError("guide/many-nodes", ranks=ranks, here=here)
    address = _address(told)
    for name in told:
        if name in _OURS or name.startswith(_FAMILIES):
            del os.environ[name]
    return _follow(address) if told["LOCAL_RANK"] != "0" else _lead(address, ranks, lead)


def _address(told: dict[str, str]) -> str:
    """Return a name that the processes of one launch share and no other launch has."""
    parts = (os.getuid(), os.getppid(), told.get("MASTER_PORT", ""), told.get("TORCHELASTIC_RESTART_COUNT", ""))
    return "\0headway-lead-" + "-".join(map(str, parts))


def _lead(address: str, ranks: int, lead: Callable[[int | None], int]) -> int:
    code = 1
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen(ranks)
        threading.Thread(target=_stop_with_launcher, args=(os.getppid(),), daemon=True).start()
        try:
            code = lead(ranks)
        except HeadwayError as error:
            code = error.exit_code
            raise
        finally:
            _tell(door, ranks - 1, code)
    return code


def _stop_with_launcher(launcher: int) -> None:
    """Ask this process to stop as a person would, once nobody waits for it any more."""
    while os.getppid() == launcher:
        time.sleep(_LOOK_S)
    os.kill(os.getpid(), signal.SIGTERM)


def _tell(door: socket.socket, followers: int, code: int) -> None:
    """Give every follower the exit code; most of them have waited in the queue since the start."""
    door.settimeout(_LATE_S)
    for _ in range(followers):
        try:
            line, _ = door.accept()
        except TimeoutError:
            return  # the launcher ends it
        with line:
            line.sendall(bytes([code & 0xFF]))


def _follow(address: str) -> int:
    """Wait for the leader; return its exit code, or 1 when it died without one or the launcher did."""
    # Ctrl-C reaches the leader too, which saves first; the end of this process would only look like a failure.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    launcher = os.getppid()
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(_LOOK_S)
        is_connected = False
        while os.getppid() == launcher:
            try:
                if not is_connected:
                    line.connect(address)
                    is_connected = True
                told = line.recv(1)
                if told and told[0]:
                    _let_speak(line)
                return told[0] if told else 1
            except TimeoutError:
                continue
            except ConnectionRefusedError:
                time.sleep(_LOOK_S)  # the leader is still starting
            except ConnectionResetError:
                return 1
    return 1


def _let_speak(line: socket.socket) -> None:
    """Wait until the leader has ended: a launcher that sees a failed follower ends it before it has said why."""
    leader, _, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    deadline = time.monotonic() + _SPEAK_S
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{leader}/stat").read_text(encoding="ascii", errors="replace").rpartition(") ")[2]
        except OSError:
            return  # gone
        if state.startswith("Z"):
            return
        time.sleep(_LOOK_S)
