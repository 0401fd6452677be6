"""Metric lines as columns of bytes: a million steps are looked at without making a million objects of them.

Our own writer gives every line the same keys in the same order, so numpy finds the values by their commas. A stretch of
a file in which a line is torn, foreign or damaged is read the slow way and written again as it should be. Only values
that somebody asks for become numbers.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray

from headway.telemetry import COLUMNS, Columns, columns_of, encode_rows, open_beneath, open_regular
from headway.ui.decimals import read_decimals, read_whole

_KEYS: Final = ("a", *COLUMNS)
_HEADS: Final = np.array([len(key) + (4 if at == 0 else 3) for at, key in enumerate(_KEYS)])
"""Bytes in front of each value: `{"a":` and `"step":`."""
_CHUNK_BYTES: Final = 1 << 20
_NEWLINE, _COMMA, _QUOTE, _COLON, _OPEN, _CLOSE, _ZERO, _NULL = b'\n,":{}0n'
_LONG_BYTES: Final = 16 << 20
_LOOKS: Final = 360
_LOOK_BYTES: Final = 24 << 10
"""A quick look at a long file: places, and bytes at each."""
_LONG_TEXT: Final = 24
_STRETCHES: Final = 2500
"""Stretches a long file is cut into; each keeps about four of its steps."""

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Keep = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines of one stretch of a file, and where each value begins and ends."""

    data: NDArray[np.uint8]
    starts: Whole
    ends: Whole
    attempt: Whole
    step: Whole
    is_mark: Keep
    """Lines that say where an attempt continues (`MetricsWriter.go_back`), and tell of no step."""

    def texts(self, key: str) -> NDArray[np.bytes_]:
        """Return the values of a column as they are in the file."""
        start, end = self.starts[:, _KEYS.index(key)], self.ends[:, _KEYS.index(key)]
        width = max(1, int((end - start).max(initial=0)))
        at = np.arange(width)
        found = self.data[np.minimum(start[:, None] + at, len(self.data) - 1)]
        found[at >= (end - start)[:, None]] = 0
        return np.ascontiguousarray(found).view(f"S{width}").ravel()

    def floats(self, key: str) -> Floats:
        """Return the values of a column; what is not a number is NaN."""
        column = _KEYS.index(key)
        start, end = self.starts[:, column], self.ends[:, column]
        is_constant = self._is_constant(start, end)
        found = read_decimals(self.data, start[:1], end[:1]) if is_constant else read_decimals(self.data, start, end)
        if is_constant:
            value = _number(self.data[start[0] : end[0]].tobytes()) if found is None else found[0]
            return np.full(len(self.step), value)
        if found is not None:
            return found
        texts = self.texts(key)
        try:
            return texts.astype(np.float64)
        except ValueError:
            return np.array([_number(text) for text in texts.tolist()], dtype=np.float64)

    def _is_constant(self, start: Whole, end: Whole) -> bool:
        """Say whether all of a column is the same text, as most parts of a step are that a run does not have."""
        width = int(end[0] - start[0])
        if width > _LONG_TEXT or ((end - start) != width).any():
            return False
        return all(bool((self.data[start + at] == self.data[start[0] + at]).all()) for at in reversed(range(width)))

    def is_zero(self, key: str) -> NDArray[np.bool_]:
        """Say which values of a column are written as `0.0` or `0`."""
        start, end = self.starts[:, _KEYS.index(key)], self.ends[:, _KEYS.index(key)]
        first, last = self.data[start] == _ZERO, self.data[end - 1] == _ZERO
        return np.asarray(first & last & ((end - start == 1) | (end - start == 3)), dtype=np.bool_)

    def bare(self, keep: NDArray[np.bool_]) -> bytes:
        """Return the kept lines without keys and braces: values with commas."""
        mask = np.ones(len(self.data), dtype=np.bool_)
        heads = self.starts - _HEADS
        for column, length in enumerate(_HEADS.tolist()):
            for at in range(length):
                mask[heads[:, column] + at] = False
        mask[self.ends[:, -1]] = False
        self._drop(mask, keep)
        return self.data[mask].tobytes()

    def whole(self, keep: NDArray[np.bool_]) -> bytes:
        """Return the kept lines as they are."""
        if keep.all():
            return self.data.tobytes()
        if keep.sum() < len(keep) // 2:
            first, last = self.starts[keep, 0] - _HEADS[0], self.ends[keep, -1] + 2
            return b"".join([self.data[a:b].tobytes() for a, b in zip(first.tolist(), last.tolist(), strict=True)])
        mask = np.ones(len(self.data), dtype=np.bool_)
        self._drop(mask, keep)
        return self.data[mask].tobytes()

    def _drop(self, mask: NDArray[np.bool_], keep: NDArray[np.bool_]) -> None:
        for row in np.flatnonzero(~keep).tolist():
            mask[self.starts[row, 0] - _HEADS[0] : self.ends[row, -1] + 2] = False


def read_lines(path: Path) -> Iterator[Lines]:
    """Yield the lines of a rank's metrics, some thousand at a time; an absent or unreadable file has none."""
    try:
        fd = open_regular(path)
    except OSError:
        return
    with open(fd, "rb") as file:
        left, rest = os.fstat(fd).st_size, b""
        while left > 0:
            try:
                chunk = file.read(min(_CHUNK_BYTES, left))
            except OSError:
                return
            if not chunk:
                return
            left -= len(chunk)
            end = chunk.rfind(b"\n") + 1
            whole, rest = (rest + chunk[:end], chunk[end:]) if end else (b"", rest + chunk)
            if len(rest) > 64 * _CHUNK_BYTES:  # no line of ours is that long
                rest = b""
            if whole and (found := _index(whole) or _index(encode_rows(whole))) is not None:
                yield found


def open_new(path: Path) -> IO[bytes]:
    """Open a file to be written from its start; a link or anything but a file in its place is refused, not followed."""
    fd = open_beneath(path, os.O_RDWR)
    os.ftruncate(fd, 0)
    return open(fd, "w+b")


def _index(data: bytes) -> Lines | None:
    """Find every value, or return None where the lines are not all as our writer makes them."""
    bytes_ = np.frombuffer(data, dtype=np.uint8)
    commas, ends = np.flatnonzero(bytes_ == _COMMA), np.flatnonzero(bytes_ == _NEWLINE)
    num = len(ends)
    if not num or len(commas) != (len(_KEYS) - 1) * num:
        return None
    commas_of = commas.reshape(num, len(_KEYS) - 1)
    begins = np.concatenate([[0], ends[:-1] + 1])
    if (commas_of[:, 0] <= begins).any() or (commas_of[:, -1] >= ends).any() or (bytes_[ends - 1] != _CLOSE).any():
        return None
    heads = np.column_stack([begins, commas_of + 1])
    starts, stops = heads + _HEADS, np.column_stack([commas_of, ends - 1])
    if (starts >= stops).any() or (bytes_[starts - 1] != _COLON).any() or (bytes_[starts - 2] != _QUOTE).any():
        return None
    if (bytes_[heads[:, 0]] != _OPEN).any() or (bytes_[heads[:, 1:]] != _QUOTE).any():
        return None
    attempt = read_whole(bytes_, starts[:, 0], stops[:, 0])
    step = read_whole(bytes_, starts[:, 1], stops[:, 1])
    if attempt is None or step is None:
        return None
    nulls = bytes_[starts[:, [_KEYS.index("samples"), _KEYS.index("t")]]] == _NULL
    return Lines(bytes_, starts, stops, attempt, step, nulls.all(1))


def _number(text: bytes) -> float:
    try:
        return float(text.strip(b'"'))
    except ValueError:
        return float("nan")


def kept_rows(attempt: Whole, step: Whole, is_mark: Keep) -> Keep:
    """Say which lines still count, as `telemetry.read_metrics` does: a later attempt takes steps back."""
    kept = np.zeros(len(step), dtype=np.bool_)
    if not len(step):
        return kept
    turns = np.flatnonzero((np.diff(step) <= 0) | (np.diff(attempt) != 0) | is_mark[:-1] | is_mark[1:]) + 1
    runs: list[tuple[int, int]] = []
    for first, last in zip([0, *turns.tolist()], [*turns.tolist(), len(step)], strict=True):
        if runs and attempt[first] < attempt[runs[-1][1] - 1]:
            continue
        back_to = step[first] + is_mark[first]  # the first step that is taken back
        while runs and step[runs[-1][1] - 1] >= back_to:
            begin, end = runs.pop()
            end = begin + int(np.searchsorted(step[begin:end], back_to))
            if end > begin:
                runs.append((begin, end))
                break
        if not is_mark[first]:
            runs.append((first, last))
    for first, last in runs:
        kept[first:last] = True
    return kept


@dataclass(frozen=True, slots=True)
class Sample:
    """Some of a rank's steps, chosen so that curves keep their extremes and sums stay right."""

    columns: Columns
    weight: Floats
    """How many steps each one stands for; 0: it is there only to be drawn."""
    num_lines: int
    num_kept: int


def is_long(path: Path) -> bool:
    """Say whether a rank's file holds more steps than are worth reading one by one."""
    try:
        return path.stat().st_size > _LONG_BYTES
    except OSError:
        return False


def sample_rows(path: Path, wanted: Floats | None = None) -> Sample:
    """Read a long file once and keep about ten thousand of its steps.

    Of every stretch one step by chance, which stands for all of it, and those with the lowest and highest loss and the
    longest time; beside them all steps that validate or save, for they are few and long, and both ends of each attempt.

    Args:
        wanted: take these steps instead: those that were chosen from another rank.
    """
    chance = np.random.default_rng(0)
    size, stretch, place = _size(path), 0, 0
    heads, rows, weights, texts = [], [], [], []
    for lines in read_lines(path):
        num = len(lines.step)
        # The file's size and its first lines tell how many steps there are, near enough to choose by.
        stretch = stretch or max(1, round(size / (len(lines.data) / num) / _STRETCHES))
        if wanted is None:
            weight = _choose(lines, stretch, chance)
        else:
            weight = np.where(np.isin(lines.step, wanted), 1.0, np.nan)
        chosen = ~np.isnan(weight)
        heads.append((lines.attempt, lines.step, lines.is_mark))
        rows.append(np.flatnonzero(chosen) + place)
        weights.append(weight[chosen])
        texts.append(lines.whole(chosen))
        place += num
    if not heads:
        return Sample(columns_of(b""), np.zeros(0), 0, 0)
    attempt, step, is_mark = map(np.concatenate, zip(*heads, strict=True))
    kept = kept_rows(attempt, step, is_mark)
    columns, at = columns_of(b"".join(texts)), kept[np.concatenate(rows)]
    assert len(columns["step"]) == len(at), "what was found by its commas is a line"
    thinned = {key: array("d", np.frombuffer(values)[at].tobytes()) for key, values in columns.items()}
    return Sample(thinned, np.concatenate(weights)[at], int((~is_mark).sum()), int(kept.sum()))


def glance_rows(path: Path) -> Sample:
    """Look at a long file in some hundred places, both ends among them, and keep steps as `sample_rows` does.

    A tenth of a second instead of seconds: a screen shows this until all was read. Sums are right on average; a spike
    between two places is not seen yet.
    """
    chance, size = np.random.default_rng(0), _size(path)
    heads, weights, texts = [], [], []
    for lines in _look(path, size):
        weight = _choose(lines, max(1, len(lines.step) // 3), chance)
        weight *= size / (_LOOKS * _LOOK_BYTES)
        chosen = ~np.isnan(weight)
        heads.append((lines.attempt[chosen], lines.step[chosen], lines.is_mark[chosen]))
        weights.append(weight[chosen])
        texts.append(lines.whole(chosen))
    if not heads:
        return Sample(columns_of(b""), np.zeros(0), 0, 0)
    at, columns = kept_rows(*map(np.concatenate, zip(*heads, strict=True))), columns_of(b"".join(texts))
    thinned = {key: array("d", np.frombuffer(values)[at].tobytes()) for key, values in columns.items()}
    return Sample(thinned, np.concatenate(weights)[at], 0, 0)


def _look(path: Path, size: int) -> Iterator[Lines]:
    try:
        fd = open_regular(path)
    except OSError:
        return
    try:
        for start in np.linspace(0, max(0, size - _LOOK_BYTES), _LOOKS).astype(int).tolist():
            data = os.pread(fd, _LOOK_BYTES, start)
            first = data.find(b"\n") + 1 if start else 0
            whole = data[first : data.rfind(b"\n") + 1]
            if whole and (found := _index(whole) or _index(encode_rows(whole))) is not None:
                yield found
    finally:
        os.close(fd)


def _choose(lines: Lines, stretch: int, chance: np.random.Generator) -> Floats:
    """Return the weight of each line, NaN for those that are left out."""
    num = len(lines.step)
    weight = np.full(num, np.nan)
    bounds = np.arange(0, num, stretch)
    loss, took = lines.floats("loss"), lines.floats("dt")
    is_number, is_known = np.isfinite(loss), np.isfinite(took)
    looks = [np.where(is_number, loss, np.inf), np.where(is_number, -loss, np.inf), np.where(is_known, -took, np.inf)]
    if not is_number.all():
        looks.append(np.where(is_number, 0.0, -1.0))  # a loss that is not a number stays a gap in its curve
    for values in looks:
        weight[_lowest(values, bounds, stretch)] = 0.0
    weight[[0, num - 1]] = 0.0
    turns = np.flatnonzero(np.diff(lines.attempt))
    weight[turns] = weight[turns + 1] = 0.0
    is_long = np.zeros(num, dtype=np.bool_)
    for key in ("save", "eval"):
        is_long |= ~lines.is_zero(key)
    if is_long.sum() > num // 4:
        is_long[:] = False  # where every step validates, validating is nothing special
    for start in bounds.tolist():
        plain = start + np.flatnonzero(~is_long[start : start + stretch])
        if len(plain):
            weight[plain[chance.integers(len(plain))]] = len(plain)
    weight[is_long] = 1.0
    return weight


def _lowest(values: Floats, bounds: Whole, stretch: int) -> list[int]:
    return [int(start + np.argmin(values[start : start + stretch])) for start in bounds.tolist()]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
