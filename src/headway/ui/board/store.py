"""What the pages are made from: runs by an id that no path can be hidden in, read again only when their files moved."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from headway.telemetry import Note, RunDir, RunRow, is_run, list_rows, note_path, read_note
from headway.ui.report import Facts, gather
from headway.ui.sparkline import read_sparkline

_ROWS_S: Final = 1.0
_FRESH_S: Final = 1.0
_SHARE: Final = 0.05
"""A run that moves is read again at most so often, and in at most this share of the time, however many look at it."""
_KEPT: Final = 6
_KEPT_SPARKS: Final = 2000
T = TypeVar("T")


def run_id(name: str) -> str:
    """Return the id of a run in addresses: made from its name, but not the name."""
    return hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()


@dataclass(slots=True)
class Store:
    """Reads runs of one folder for many pages. Methods may be called from several threads."""

    out: Path
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _rows: tuple[float, list[RunRow]] | None = None
    _facts: OrderedDict[str, tuple[str, float, Facts]] = field(default_factory=OrderedDict)
    """What was read, of which state of the files, and until when it is fresh enough."""
    _behind: set[str] = field(default_factory=set)
    """Long runs that are being read whole."""
    _reading: dict[str, threading.Lock] = field(default_factory=dict)
    _notes: dict[str, tuple[str, Note]] = field(default_factory=dict)
    _sparks: OrderedDict[str, tuple[str, list[float]]] = field(default_factory=OrderedDict)

    def rows(self) -> list[RunRow]:
        """Return one row for every run, newest first."""
        with self._lock:
            if self._rows is None or self.clock() - self._rows[0] > _ROWS_S:
                self._rows = (self.clock(), list_rows(self.out))
            return self._rows[1]

    def find(self, wanted: str) -> RunDir | None:
        """Return the run of an id; None: there is none. The id is compared, never made into a path."""
        name = next((row.name for row in self.rows() if run_id(row.name) == wanted), None)
        run = RunDir(self.out / name) if name is not None else None
        return run if run is not None and is_run(run.root) else None

    def facts(self, run: RunDir) -> Facts:
        """Return everything of a run, read again when its files have moved."""
        with self._lock:
            turn = self._reading.setdefault(run.name, threading.Lock())
        # One reader per run: a second one that comes meanwhile takes what the first has read.
        with turn:
            now, stamp = self.clock(), stamp_of(run)
            with self._lock:
                known = self._facts.get(run.name)
            if known is not None and (known[0] == stamp or now < known[1]):
                return known[2]
            began = time.thread_time()
            facts = gather(run, with_siblings=False, at_once=True)
            self._keep(run, stamp, facts, time.thread_time() - began)
        if facts.is_glance and facts.state.state != "running":
            self._read_whole(run, stamp)
        return facts

    def _keep(self, run: RunDir, stamp: str, facts: Facts, took_s: float) -> None:
        with self._lock:
            self._facts[run.name] = (stamp, self.clock() + max(_FRESH_S, took_s / _SHARE), facts)
            self._facts.move_to_end(run.name)
            while len(self._facts) > _KEPT:
                self._facts.popitem(last=False)

    def _read_whole(self, run: RunDir, stamp: str) -> None:
        """Read a long run that has ended to its last step, behind the page that shows a glance of it."""

        def read() -> None:
            try:
                self._keep(run, stamp, gather(run, with_siblings=False), 0.0)
            finally:
                with self._lock:
                    self._behind.discard(run.name)

        with self._lock:
            if run.name in self._behind:
                return
            self._behind.add(run.name)
        threading.Thread(target=read, name=f"read {run.name}", daemon=True).start()

    def is_whole(self, run: RunDir) -> bool:
        """Say whether what is shown of a run is all of it."""
        with self._lock:
            known = self._facts.get(run.name)
        return known is None or not known[2].is_glance

    def note(self, name: str) -> Note:
        """Return what people wrote about a run."""
        run = RunDir(self.out / name)
        stamp = _stat(note_path(run))
        with self._lock:
            known = self._notes.get(name)
        if known is None or known[0] != stamp:
            known = (stamp, read_note(run) if stamp != "-" else Note())
            with self._lock:
                self._notes[name] = known
        return known[1]

    def sparkline(self, name: str) -> list[float]:
        """Return a few losses along a run."""
        path = RunDir(self.out / name).metrics(0)
        stamp = _stat(path)
        with self._lock:
            known = self._sparks.get(name)
        if known is not None and known[0] == stamp:
            return known[1]
        values = read_sparkline(path)
        with self._lock:
            self._sparks[name] = (stamp, values)
            while len(self._sparks) > _KEPT_SPARKS:
                self._sparks.popitem(last=False)
        return values


def stamp_of(run: RunDir) -> str:
    """Return a text that changes whenever something of the run was written."""
    return " ".join(map(_stat, (note_path(run), run.events, run.metrics(0), run.devices, run.log, run.heartbeat(0))))


def _stat(path: Path) -> str:
    try:
        seen = path.stat()
    except OSError:
        return "-"
    return f"{seen.st_size}:{seen.st_mtime_ns}"


def plain_state(row: RunRow) -> dict[str, Any]:
    """Return a row as the status answers show it."""
    return {
        "id": run_id(row.name),
        "name": row.name,
        "state": row.state,
        "recipe": row.recipe,
        "step": row.step,
        "total_steps": row.total_steps,
        "loss": row.loss,
        "best": None if row.best is None else {"name": row.best.name, "value": row.best.value, "step": row.best.step},
        "started": row.started,
        "ended": row.ended,
    }
