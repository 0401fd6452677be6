"""One line a step and rank: written in batches beside the hot loop, read back as columns."""

from __future__ import annotations

import json
import logging
import math
import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from headway.telemetry.lines import decode_lines, encode_line, number, open_lines, plain, read_tail, write_all
from headway.telemetry.reading import read_part

COLUMNS: Final = (
    "step",
    "samples",
    "loss",
    "lr",
    "grad_norm",
    "t",
    "dt",
    "data",
    "forward",
    "backward",
    "comm",
    "optimizer",
    "save",
    "eval",
    "mem",
)
"""Keys of a line after `a` (the attempt). `dt` is the whole step; `save` and `eval` are parts of it."""
PARTS: Final = ("data", "forward", "backward", "comm", "optimizer", "save", "eval")
"""The split of `dt`, in the order of a step."""

Columns = Mapping[str, "array[float]"]
"""Column name to values, one entry a step, sorted by step. Whole numbers are exact up to 2**53."""

_KEYS: Final = ("a", *COLUMNS)
_LIMIT: Final = 100_000
_LINE_BYTES: Final = 512
_MOST_COUNT: Final = 1 << 53
_BACK: Final = b'"samples":null,"loss":null,"lr":null,"grad_norm":null,"t":null'
"""In the line that `go_back` writes, and in no step's."""
_log: Final = logging.getLogger(__name__)


class MetricsWriter:
    """A rank's metrics. `add` only appends to a list; `flush` formats and writes all rows at once.

    A disk that fails never stops a step: rows wait for the next flush, the oldest are dropped after 100 000.
    """

    def __init__(self, path: Path, attempt: int) -> None:
        self.path, self._attempt = path, attempt
        self._line = f'{{"a":{attempt},' + ",".join(f'"{key}":%s' for key in COLUMNS) + "}\n"
        self._rows: list[tuple[object, ...]] = []
        self._waiting = b""
        self._is_failing = False
        self._fd: int | None = None

    def add(
        self,
        step: int,
        samples: int,
        loss: float,
        lr: float,
        grad_norm: float,
        t: float,
        dt: float,
        data: float = 0.0,
        forward: float = 0.0,
        backward: float = 0.0,
        comm: float = 0.0,
        optimizer: float = 0.0,
        save: float = 0.0,
        eval: float = 0.0,
        mem: int | None = None,
    ) -> None:
        """Remember one finished step; under a microsecond."""
        self._rows.append(
            (step, samples, loss, lr, grad_norm, t, dt, data, forward, backward, comm, optimizer, save, eval, mem)
        )

    def go_back(self, step: int) -> None:
        """Note that the run continues after this step: lines beyond it are of work that is not in the weights.

        The next step's own line would say so too, but a step that is skipped has none.
        """
        if step > 0 or (step == 0 and self._attempt > 1):
            self._rows.append((step, *[None] * (len(COLUMNS) - 1)))

    def flush(self) -> None:
        """Append all remembered steps to the file with one write."""
        if not self._rows and not self._waiting:
            return
        try:
            self._write()
        except Exception as err:  # border: telemetry emit; a step must not fail because its line cannot be written
            if not self._is_failing:
                _log.warning("%s: %s", self.path, err)
            self._is_failing = True
            del self._rows[:-_LIMIT]

    def close(self) -> None:
        """Flush and close the file."""
        self.flush()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _write(self) -> None:
        if self._fd is None:
            self._fd = open_lines(self.path)
        if len(self._waiting) < _LIMIT * _LINE_BYTES:
            self._waiting += _format_rows(self._line, self._rows)
            self._rows.clear()
        self._waiting = write_all(self._fd, self._waiting)
        if self._waiting:
            raise OSError(f"{len(self._waiting)} bytes could not be written")
        self._is_failing = False


def _format_rows(line: str, rows: list[tuple[object, ...]]) -> bytes:
    """Return the lines of the rows; floats in their shortest exact form."""
    # The C encoder turns all rows into text in one call (8 us a row; `%r` a value takes 14).
    text = json.dumps(rows, separators=(",", ":"), default=float)
    if "N" in text or "I" in text:
        text = json.dumps(plain(rows), separators=(",", ":"), allow_nan=False)
    return "".join([line % tuple(row.split(",")) for row in text[2:-2].split("],[")]).encode() if rows else b""


def read_metrics(path: Path) -> Columns:
    """Return a rank's steps as columns. After a restart some steps are redone: the last attempt wins."""
    data = read_part(path)
    rows: list[tuple[Any, ...]] = []
    for chunk in _chunks(data):
        rows.extend(_take_rows(decode_lines(chunk)))
    return _make_columns(_keep_last_attempt(rows))


def encode_rows(data: bytes) -> bytes:
    """Return lines as our writer would have written them; what is not a line of metrics is left out."""
    rows = _take_rows(decode_lines(data))
    lines = []
    for row in rows:
        values = [row[0], row[1], *(_cell(key, value) for key, value in zip(_KEYS[2:], row[2:], strict=True))]
        lines.append(encode_line(dict(zip(_KEYS, values, strict=True))))
    return b"".join(lines)


def _cell(key: str, value: Any) -> float | int | None:
    """Return a value as a number; a count that is one stays whole."""
    if key in ("samples", "mem") and _is_count(value):
        return int(value)
    found = number(value)
    return None if math.isnan(found) and value is None else found


def columns_of(lines: bytes) -> Columns:
    """Return the columns of some lines, all of them and in their order."""
    return _make_columns(_take_rows(decode_lines(lines)))


def tail_metrics(path: Path, num_steps: int = 64) -> Columns:
    """Return about the last steps of a rank, reading only the end of its file."""
    data = read_tail(path, num_steps * _LINE_BYTES)
    return _make_columns(_keep_last_attempt(_take_rows(decode_lines(data)))[-num_steps:])


def _chunks(data: bytes, size: int = 16 << 20) -> Iterable[bytes]:
    """Cut at line ends, so that a file of a million steps never is in memory as a million dicts."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + size)
        end = len(data) if end < 0 else end + 1
        yield data[start:end]
        start = end


def _take_rows(records: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    try:
        rows = list(map(itemgetter(*_KEYS), records))
    except KeyError:
        rows = [tuple(record.get(key) for key in _KEYS) for record in records]
    return [row for row in rows if _is_count(row[0]) and _is_count(row[1])]


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST_COUNT


def count_steps(lines: bytes) -> int:
    """Return how many steps whole lines tell of, those of every attempt."""
    return lines.count(b"\n") - lines.count(_BACK)


def _keep_last_attempt(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Keep the steps that still count.

    An attempt that begins at step 151 (or a roll-back to it) takes back every earlier line of step 151 and beyond,
    also those it has not come to again: that work is not in the weights.
    """
    steps = [row[1] for row in rows]
    if all(map(int.__lt__, steps, steps[1:])) and None not in map(itemgetter(2), rows):
        return rows
    kept: list[tuple[Any, ...]] = []
    for row in rows:
        if kept and row[0] < kept[-1][0]:
            continue
        if row[2] is None and row[6] is None:  # see `go_back`; every step has its time
            del kept[bisect_right(kept, row[1], key=itemgetter(1)) :]
            continue
        if kept and row[1] <= kept[-1][1]:
            del kept[bisect_left(kept, row[1], key=itemgetter(1)) :]
        kept.append(row)
    return kept


def _make_columns(rows: list[tuple[Any, ...]]) -> dict[str, array[float]]:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_KEYS)
    return {key: _make_column(values) for key, values in zip(_KEYS, columns, strict=True)}


def _make_column(values: tuple[Any, ...]) -> array[float]:
    try:
        return array("d", values)
    except (TypeError, OverflowError):
        return array("d", map(number, values))


def own_step_s(columns: Columns, index: int) -> float:
    """Return the time one step took by itself, without validation and saving."""
    save, val = columns["save"][index], columns["eval"][index]
    own = columns["dt"][index] - (save if save > 0 else 0.0) - (val if val > 0 else 0.0)
    # Some loops count validation into the step, some beside it; a step is never shorter than its own parts.
    parts = sum(columns[key][index] for key in ("data", "forward", "backward", "optimizer"))
    return own if math.isnan(parts) else max(own, parts)
