"""Ranks that somebody starts by hand, one command each: who is there, who is missing, who is there twice.

A launcher gives every process its own RANK. The guide's third way sets it once in the shell, so that all of them are
rank 0, and the original then waits for the others until it times out. Here rank 0 keeps a list at an abstract socket
named after MASTER_ADDR and MASTER_PORT: nothing is left on disk, and it is gone with the process.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headway.errors import HeadwayError, UsageError

_PATIENCE_S = 60.0
"""How long rank 0 waits for the next one, and the others for rank 0."""
_LOOK_S = 0.2
_DEVICES = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Seat:
    """What one process was told about itself."""

    rank: int
    ranks: int
    pid: int
    devices: str | None
    """The GPUs it may see."""


def is_by_hand(told: Mapping[str, str]) -> bool:
    """Tell whether ranks are set and no launcher has set them."""
    return "TORCHELASTIC_RUN_ID" not in told and any(name in told for name in ("RANK", "WORLD_SIZE"))


def read_seat(told: Mapping[str, str]) -> Seat:
    """Return what the environment says, or what it should have said."""
    try:
        seat = Seat(int(told["RANK"]), int(told["WORLD_SIZE"]), os.getpid(), told.get(_DEVICES))
    except (KeyError, ValueError) as err:
        raise UsageError("guide/half-set", rank=told.get("RANK"), ranks=told.get("WORLD_SIZE")) from err
    if not 0 <= seat.rank < seat.ranks:
        raise UsageError("guide/rank-range", rank=seat.rank, ranks=seat.ranks, last=seat.ranks - 1)
    return seat


def call_roll(told: Mapping[str, str], lead: Callable[[int], int], *, patience_s: float = _PATIENCE_S) -> int:
    """Return the exit code of `lead`, which rank 0 runs once all ranks are there and the others wait for."""
    seat = read_seat(told)
    port = told.get("MASTER_PORT", "29500")
    address = f"\0headway-roll-{os.getuid()}-{told.get('MASTER_ADDR', 'localhost')}-{port}"
    with socket.socket(socket.AF_UNIX) as door:
        if seat.rank == 0:
            try:
                door.bind(address)
            except OSError:
                return _follow(address, seat, patience_s)  # somebody else is rank 0: say so to both
            door.listen(seat.ranks)
            return _lead(door, seat, lead, patience_s)
    return _follow(address, seat, patience_s)


def _lead(door: socket.socket, own: Seat, lead: Callable[[int], int], patience_s: float) -> int:
    seats, lines = {0: own}, []
    code = UsageError.exit_code
    try:
        while len(seats) < own.ranks:
            line, seat = _let_in(door, seats, own.ranks, patience_s)
            lines.append(line)
            if seat is None:
                continue
            _refuse_odd(seat, seats, own)
            seats[seat.rank] = seat
        _join_devices(seats)
        code = lead(own.ranks)
    except HeadwayError as error:
        code = error.exit_code
        raise
    finally:
        for line in lines:
            with line:
                _send(line, {"code": code})
    return code


def _let_in(
    door: socket.socket, seats: Mapping[int, Seat], ranks: int, patience_s: float
) -> tuple[socket.socket, Seat | None]:
    """Return the next one who comes; none where it went away before it said who it is."""
    door.settimeout(patience_s)
    try:
        line, _ = door.accept()
        line.settimeout(patience_s)
        said = _receive(line)
        return line, Seat(**json.loads(said)) if said else None
    except TimeoutError as err:
        missing = ", ".join(str(rank) for rank in range(ranks) if rank not in seats)
        raise UsageError(
            "guide/ranks-missing", ranks=ranks, have=len(seats), missing=missing, waited=f"{patience_s:g}"
        ) from err


def _refuse_odd(seat: Seat, seats: Mapping[int, Seat], own: Seat) -> None:
    if seat.ranks != own.ranks:
        raise UsageError("guide/other-world", rank=seat.rank, theirs=seat.ranks, ours=own.ranks)
    if seat.rank in seats:
        first, ranks = seats[seat.rank], own.ranks
        raise UsageError(
            "guide/rank-twice", rank=seat.rank, first=first.pid, second=seat.pid, ranks=ranks, last=ranks - 1
        )


def _join_devices(seats: Mapping[int, Seat]) -> None:
    """Show rank 0 the GPUs of all: each process was given only its own, which is device 0 to it, whatever its rank."""
    named = [seats[rank].devices for rank in sorted(seats)]
    distinct = list(dict.fromkeys(device for device in named if device))
    if distinct:
        os.environ[_DEVICES] = ",".join(distinct)


def _follow(address: str, seat: Seat, patience_s: float) -> int:
    """Tell rank 0 that this one is here, wait for it, and return its exit code."""
    deadline = time.monotonic() + patience_s
    while True:
        with socket.socket(socket.AF_UNIX) as line:
            try:
                line.connect(address)
            except ConnectionRefusedError as err:
                if time.monotonic() > deadline:
                    raise UsageError("guide/no-first", rank=seat.rank, waited=f"{patience_s:g}") from err
                time.sleep(_LOOK_S)
                continue
            _send(line, {"rank": seat.rank, "ranks": seat.ranks, "pid": seat.pid, "devices": seat.devices})
            answer = _receive(line)
            return int(json.loads(answer)["code"]) if answer else 1


def _send(line: socket.socket, facts: Mapping[str, object]) -> None:
    try:
        line.sendall(f"{json.dumps(facts)}\n".encode())
    except OSError:
        return  # it is gone: nobody is left to be told


def _receive(line: socket.socket) -> str:
    with line.makefile(encoding="utf-8") as lines:
        try:
            return lines.readline()
        except ConnectionResetError:
            return ""
