"""Torch's flight recorder: what a rank has told of its collectives, the ones inside of C++ too."""

from __future__ import annotations

import contextlib
import io
import json
import math
import pickle
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from headway.launch.hook.place import DUMP_NAME

_MOST_BYTES: Final = 1 << 20
_MOST_PICKLE_BYTES: Final = 8 << 20
"""2,000 collectives with 20 frames each are 0.9 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """Where one rank is in its one process group."""

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

    Whatever names a class or a function is refused, so nothing can be called: without one on its stack a pickle only
    builds plain values.

    Raises:
        ValueError: it holds anything else, or is damaged.
    """
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except (pickle.UnpicklingError, EOFError, LookupError, TypeError, AttributeError, MemoryError) as err:
        raise ValueError(f"a damaged pickle: {err!r}") from err


class _PlainUnpickler(pickle.Unpickler):
    """Refuses every name. C code reads 2,000 collectives in 0.04 s; followed in Python it took 0.32 s, and all wait."""

    def find_class(self, module: str, name: str, /) -> NoReturn:
        """Refuse it."""
        raise ValueError(f"{module}.{name} is refused")


def _count(group: Any, name: str) -> int:
    value = group.get(name) if isinstance(group, dict) else None
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.lstrip("-").isdigit()) else -1


def _numel(sizes: Any) -> int:
    if not isinstance(sizes, list) or not all(isinstance(one, list | tuple) for one in sizes):
        return -1
    if not all(isinstance(side, int) for one in sizes for side in one):
        return -1
    return sum(math.prod(one) for one in sizes)
