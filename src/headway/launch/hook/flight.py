"""Torch's flight recorder: what a rank has told of its collectives, the ones inside of C++ too."""

from __future__ import annotations

import contextlib
import json
import math
import pickletools
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headway.launch.hook.place import DUMP_NAME

_MOST_BYTES: Final = 1 << 20
_MOST_PICKLE_BYTES: Final = 64 << 20
_MARK: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """Where one rank stands in its one process group."""

    enqueued: int
    """Collectives begun, by Python or by C++."""
    completed: int
    pending: str | None = None
    """The oldest that has not ended; None: all have."""
    numel: int = -1
    """Elements of its tensors; -1: not known."""


def ask_for_flight(pid: int) -> None:
    """Ask the hook of a process for its recorder; the answer is a file a moment later, or nothing."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ask:
        ask.setblocking(False)
        ask.sendto(b"flight", f"\0headway-ask-{pid}")


def read_flight(folder: Path, attempt: int, pid: int) -> Flight | None:
    """Return what that process has answered in this attempt; None: nothing that can be compared between ranks."""
    try:
        with (folder / f"flight-{attempt}.json").open("rb") as file:
            told = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict) or told.get("pid") != pid:
        return None
    return flight_of(told.get("groups"), told.get("entries"))


def flight_of(groups: Any, entries: Any) -> Flight | None:
    """Make the record from torch's own words; with several groups numbers of different ranks do not compare."""
    # Any: what another program has written; every part is looked at before it is used.
    if not isinstance(groups, dict) or not isinstance(entries, list):
        return None
    counts = [
        (_count(one, "last_enqueued_collective"), _count(one, "last_completed_collective")) for one in groups.values()
    ]
    used = [(begun, ended) for begun, ended in counts if begun > 0]
    if len(used) != 1:
        return None
    begun, ended = used[0]
    waiting = [
        one for one in entries if isinstance(one, dict) and one.get("retired") is False and not one.get("is_p2p")
    ]
    if not waiting:
        return Flight(enqueued=begun, completed=ended)
    name = str(waiting[0].get("profiling_name", "n/a")).rpartition(":")[2]
    return Flight(enqueued=begun, completed=ended, pending=name[:64], numel=_numel(waiting[0].get("input_sizes")))


def read_dump(run_root: Path, rank: int, since: float) -> Flight | None:
    """Read the file that NCCL's watchdog leaves: a pickle, of which only plain values are made.

    A file older than `since` (unix seconds) is from an attempt before.
    """
    path = run_root / "ranks" / f"{DUMP_NAME}{rank}"
    try:
        if path.stat().st_mtime < since:
            return None
        with path.open("rb") as file:
            told = read_plain(file.read(_MOST_PICKLE_BYTES))
    except (OSError, ValueError):
        return None
    return flight_of(told.get("pg_status"), told.get("entries")) if isinstance(told, dict) else None


def read_plain(data: bytes) -> Any:
    """Return a pickle made of dicts, lists, tuples, texts and numbers.

    The opcodes are followed one by one; those that name a class or call something are refused, so nothing can run.

    Raises:
        ValueError: it holds anything else, or is damaged.
    """
    stack: list[Any] = []
    memo: dict[object, Any] = {}
    try:
        for opcode, argument, _ in pickletools.genops(data):
            name = opcode.name
            if name == "STOP":
                return stack.pop()
            if name in ("BINPUT", "LONG_BINPUT"):
                memo[argument] = stack[-1]
            elif name == "MEMOIZE":
                memo[len(memo)] = stack[-1]
            elif name in ("BINGET", "LONG_BINGET"):
                stack.append(memo[argument])
            else:
                _apply(name, argument, stack)
    except (IndexError, KeyError, TypeError) as err:
        raise ValueError(f"a damaged pickle: {err!r}") from err
    raise ValueError("a pickle without an end")


def _apply(name: str, argument: Any, stack: list[Any]) -> None:
    match name:
        case "PROTO" | "FRAME":
            pass
        case "MARK":
            stack.append(_MARK)
        case "EMPTY_DICT" | "EMPTY_LIST" | "EMPTY_TUPLE":
            stack.append({"EMPTY_DICT": {}, "EMPTY_LIST": [], "EMPTY_TUPLE": ()}[name])
        case "NONE" | "NEWTRUE" | "NEWFALSE":
            stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[name])
        case "BININT" | "BININT1" | "BININT2" | "LONG1" | "BINFLOAT" | "BINUNICODE" | "SHORT_BINUNICODE":
            stack.append(argument)
        case "APPEND":
            item = stack.pop()
            stack[-1].append(item)
        case "APPENDS":
            items = _since_mark(stack)
            stack[-1].extend(items)
        case "SETITEM":
            value, key = stack.pop(), stack.pop()
            stack[-1][key] = value
        case "SETITEMS":
            items = _since_mark(stack)
            stack[-1].update(zip(items[::2], items[1::2], strict=True))
        case "TUPLE":
            stack.append(tuple(_since_mark(stack)))
        case "TUPLE1" | "TUPLE2" | "TUPLE3":
            size = int(name[-1])
            stack[-size:] = [tuple(stack[-size:])]
        case _:
            raise ValueError(f"the opcode {name} is refused")


def _since_mark(stack: list[Any]) -> list[Any]:
    items = []
    while (item := stack.pop()) is not _MARK:
        items.append(item)
    return items[::-1]


def _count(group: Any, name: str) -> int:
    value = group.get(name) if isinstance(group, dict) else None
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.lstrip("-").isdigit()) else -1


def _numel(sizes: Any) -> int:
    if not isinstance(sizes, list) or not all(isinstance(one, list | tuple) for one in sizes):
        return -1
    if not all(isinstance(side, int) for one in sizes for side in one):
        return -1
    return sum(math.prod(one) for one in sizes)
