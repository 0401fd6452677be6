"""The run's history: one ordered, durable line an event. The supervisor alone writes it."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from headway.redact import redact, redact_words
from headway.telemetry.lines import decode_lines, encode_line, open_lines, read_objects, reserve, write_all
from headway.telemetry.reading import read_part

Event = dict[str, Any]

_log: Final = logging.getLogger(__name__)
_KEEP_BYTES: Final = 8 << 20
_RESERVE_BYTES: Final = 256 << 10
"""Kept on disk for the next events: how a run ended is written also where the disk is full."""


class EventLog:
    """Appends events. A failing disk never stops the run: lines wait in memory and go out with the next event."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting = b""
        self._is_failing = False
        self._fd: int | None = None
        self._seq = 0
        self._reserved = 0
        self._guard(self._open)

    def append(self, kind: str, **facts: object) -> Event:
        """Stamp an event, write it, and wait until the disk has it."""
        with self._lock:
            self._seq += 1
            facts = {name: _without_secrets(fact) for name, fact in facts.items()}
            event = {**facts, "seq": self._seq, "t": self._clock(), "kind": kind}
            ordered = {key: event[key] for key in ("seq", "t", "kind", *facts) if key in event}
            self._guard(lambda: self._write(encode_line(ordered)))
            return ordered

    def close(self) -> None:
        """Write what is still waiting and close the file."""
        with self._lock:
            self._guard(lambda: self._write(b""))
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def _open(self) -> None:
        self._fd = open_lines(self.path)
        self._reserved = reserve(self._fd, _RESERVE_BYTES)
        known = [event["seq"] for event in read_events(self.path) if isinstance(event.get("seq"), int)]
        self._seq = max(self._seq, *known) if known else self._seq

    def _write(self, line: bytes) -> None:
        self._waiting = (self._waiting + line)[-_KEEP_BYTES:]
        if self._fd is None:
            self._fd = open_lines(self.path)
            self._reserved = reserve(self._fd, _RESERVE_BYTES)
        rest = write_all(self._fd, self._waiting)
        is_short = bool(rest)
        self._waiting = rest
        self._reserved -= len(line)
        if self._reserved < _RESERVE_BYTES // 2 and not is_short:
            self._reserved = reserve(self._fd, _RESERVE_BYTES)
        os.fsync(self._fd)
        if is_short:
            raise OSError(f"{len(rest)} bytes of {self.path.name} could not be written")
        self._is_failing = False

    def _guard(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as err:  # border: telemetry emit; training continues when the history cannot be written
            if not self._is_failing:
                _log.warning("%s: %s", self.path, err)
            self._is_failing = True


def _without_secrets(fact: Any) -> Any:
    """Return a fact as it may be written down: the history goes into reports, and reports are mailed."""
    if isinstance(fact, str):
        return redact(fact)
    if isinstance(fact, dict):
        return {name: _without_secrets(one) for name, one in fact.items()}
    if isinstance(fact, list | tuple):
        is_text = bool(fact) and all(isinstance(one, str) for one in fact)
        return redact_words(fact) if is_text else [_without_secrets(one) for one in fact]
    return fact


def read_events(path: Path) -> list[Event]:
    """Return all events in order; a torn last line is left out."""
    return decode_lines(read_part(path))


def follow_events(path: Path, is_over: Callable[[], bool], poll_s: float = 0.2) -> Iterator[Event]:
    """Yield the events there are, then each new one, until `is_over` says so and all are read."""
    offset = 0
    while True:
        last_round = is_over()
        found, offset = read_objects(path, offset)
        yield from found
        if last_round:
            return
        if not found:
            time.sleep(poll_s)
