"""`index.sqlite`: one row a run, made from the run directories, so that a shelf of a thousand runs is listed at once.

The files are the truth. A row counts only while its stamp (sizes and times of the run's files) is that of the files
and its checksum is right; everything else is read again. The index may be missing, locked, read-only or broken, and
may be deleted at any time: the answer stays the same, only slower.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, get_args

from headway.telemetry.find import list_runs
from headway.telemetry.lines import number, plain
from headway.telemetry.reading import whole
from headway.telemetry.rundir import RunDir
from headway.telemetry.state import Cause, Measure, RunState, State, is_supervised, run_state

INDEX_NAME: Final = "index.sqlite"
_SCHEMA: Final = "row/3"
_TABLE: Final = "CREATE TABLE IF NOT EXISTS runs (name TEXT PRIMARY KEY, stamp TEXT, row TEXT, crc INTEGER)"
_NOT_OURS: Final = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
)
"""Reasons that say nothing against the index itself: somebody else writes it, or nobody can; the files are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """What the list of runs shows about one run."""

    name: str
    state: State
    cause: Cause | None
    recipe: str | None
    step: int
    total_steps: int | None
    loss: float | None
    best: Measure | None
    rate_samples_s: float | None
    rate_steps_s: float | None
    tokens_per_sample: int | None
    started: float | None
    ended: float | None
    checkpoint_bytes: int
    num_checkpoints: int
    num_findings: int = 0


def list_rows(out: Path) -> list[RunRow]:
    """Return a row for every run of a folder, newest first, and bring the index up to date on the way."""
    runs = list_runs(out)
    known = _load(out / INDEX_NAME)
    rows: dict[str, RunRow] = {}
    fresh: dict[str, tuple[str, RunRow]] = {}
    for run in runs:
        stamp = _stamp(run)
        row = known[run.name][1] if run.name in known and known[run.name][0] == stamp else None
        if row is None or not _is_settled(run, row):
            row = _make_row(run_state(run))
            fresh[run.name] = (stamp, row)
        rows[run.name] = row
    gone = known.keys() - rows.keys()
    if fresh or gone:
        _store(out / INDEX_NAME, fresh, gone)
    return [rows[run.name] for run in runs]


def _is_settled(run: RunDir, row: RunRow) -> bool:
    """Say whether nothing moves any more without touching a file that the stamp knows.

    A supervisor can die without touching one, and the heartbeat page of a live run moves without a new time.
    """
    return row.state != "running" and not is_supervised(run)


def _stamp(run: RunDir) -> str:
    """Return sizes and times of all files a row is made from."""
    parts = [_SCHEMA]
    for place in (run.events, run.metrics(0), run.checkpoints, run.job, run.plan):
        try:
            seen = place.stat()
            parts.append(f"{seen.st_size}:{seen.st_mtime_ns}")
        except OSError:
            parts.append("-")
    return " ".join(parts)


def _make_row(state: RunState) -> RunRow:
    kept = [saved for saved in state.checkpoints if saved.is_there]
    return RunRow(
        name=state.name,
        state=state.state,
        cause=state.cause,
        recipe=state.recipe,
        step=state.step,
        total_steps=state.total_steps,
        loss=state.loss,
        best=state.best,
        rate_samples_s=state.rate_samples_s,
        rate_steps_s=state.rate_steps_s,
        tokens_per_sample=state.tokens_per_sample,
        started=state.started,
        ended=state.ended,
        checkpoint_bytes=sum(saved.num_bytes for saved in kept),
        num_findings=state.findings,
        num_checkpoints=len(kept),
    )


def _load(path: Path) -> dict[str, tuple[str, RunRow]]:
    """Return the rows that can be trusted; an index that cannot be read is an empty one."""
    if not path.is_file() or path.is_symlink():
        return {}
    try:
        with closing(_connect(path)) as index:
            found = index.execute("SELECT name, stamp, row, crc FROM runs").fetchall()
    except (sqlite3.Error, UnicodeError):  # the second: sqlite3 cannot decode the name of a damaged column
        return {}
    return {row.name: (stamp, row) for key, stamp, text, crc in found if (row := _read_row(key, stamp, text, crc))}


def _connect(path: Path) -> sqlite3.Connection:
    # Nobody waits for a lock: a reader that finds one reads the files, a second writer leaves the work to the first.
    index = sqlite3.connect(path, timeout=0, isolation_level=None)
    index.text_factory = lambda data: data.decode("utf-8", "replace")
    return index


def _read_row(key: Any, stamp: Any, text: Any, crc: Any) -> RunRow | None:
    if crc != _checksum(key, stamp, text):
        return None
    try:
        data = json.loads(text)
        best, loss, cause = data.pop("best"), data.pop("loss"), data.pop("cause")
        if best is not None:
            best = Measure(**{**best, "value": number(best["value"])})
        cause = None if cause is None else Cause(**cause)
        row = RunRow(**data, best=best, cause=cause, loss=None if loss is None else number(loss))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None  # a folder that was received: the checksum is right and the row is not ours
    return row if _is_sound(row) else None


def _is_sound(row: RunRow) -> bool:
    """Say whether every value is of the kind that a row of ours has."""
    counts = [row.step, row.checkpoint_bytes, row.num_checkpoints, row.num_findings]
    counts += [one for one in (row.total_steps, row.tokens_per_sample) if one is not None]
    texts = [row.name, *([] if row.recipe is None else [row.recipe])]
    texts += [] if row.best is None else [row.best.name]
    times = [one for one in (row.rate_samples_s, row.rate_steps_s, row.started, row.ended) if one is not None]
    return (
        row.state in get_args(State)
        and all(isinstance(one, str) for one in texts)
        and all(whole(one) is not None for one in counts)
        and all(isinstance(one, int | float) for one in times)
        and (row.best is None or whole(row.best.step) is not None)
        and (row.cause is None or (isinstance(row.cause.code, str) and isinstance(row.cause.facts, dict)))
    )


def _checksum(*parts: Any) -> int:
    return zlib.crc32("\0".join(map(str, parts)).encode("utf-8", "replace"))


def _store(path: Path, fresh: dict[str, tuple[str, RunRow]], gone: set[str]) -> None:
    """Write the fresh rows; an index that is broken is rebuilt, one that is not ours to write is left alone."""
    if path.is_symlink():  # whoever planted it wants another file written
        return
    try:
        _write(path, fresh, gone)
    except (sqlite3.Error, UnicodeError) as err:
        # Only errors of the library itself carry a code.
        code: int = getattr(err, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        if code & 0xFF in _NOT_OURS:
            return
        with suppress(OSError, sqlite3.Error):
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                path.with_name(name).unlink(missing_ok=True)
            _write(path, fresh, set())


def _write(path: Path, fresh: dict[str, tuple[str, RunRow]], gone: set[str]) -> None:
    with closing(_connect(path)) as index:
        index.execute("PRAGMA journal_mode=WAL")
        index.execute("PRAGMA synchronous=NORMAL")
        index.execute("BEGIN IMMEDIATE")
        index.execute(_TABLE)
        index.executemany("DELETE FROM runs WHERE name = ?", [(json.dumps(name),) for name in gone])
        index.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", [_to_sql(*item) for item in fresh.items()])
        index.execute("COMMIT")


def _to_sql(name: str, stamped: tuple[str, RunRow]) -> tuple[str, str, str, int]:
    stamp, row = stamped
    # JSON in ASCII also carries names that are not UTF-8 on disk.
    key, text = json.dumps(name), json.dumps(plain(asdict(row)))
    return key, stamp, text, _checksum(key, stamp, text)
