"""TensorBoard event files, written by hand: TFRecord frames around small protobuf messages.

The format is public and has not changed in years (TFRecord framing with masked CRC-32C; `Event` and `Summary` of
tensorflow/core). Writing it takes these few lines, so nobody needs TensorBoard installed to train. All events of a
rank have the same tags, so numpy makes thousands of them at once: byte by byte a million steps took a minute.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headway.telemetry.tfevents import (
    FIRST,
    crc,
    crc_table,
    field_bytes,
    field_double,
    field_int,
    frame,
    masked_crc,
    scalar_value,
)
from headway.ui.rows import open_new

Point = tuple[int, float, Mapping[str, float]]
"""Step, unix seconds, tag to value."""

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Table:
    """Many points with the same tags. A value that is NaN is left out where its tag is in `optional`."""

    step: NDArray[np.int64]
    wall: Floats
    values: Mapping[str, Floats]
    optional: frozenset[str] = frozenset()


def write_tables(path: Path, tables: Iterable[Table]) -> int:
    """Write one event file from columns and return how many values it holds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    num_values = 0
    with open_new(path) as file:
        file.write(frame(field_double(1, 0.0) + field_bytes(3, FIRST), crc_table()))
        for table in tables:
            data, num = _encode(table)
            file.write(data)
            num_values += num
    return num_values


def _encode(table: Table) -> tuple[bytes, int]:
    """Return the frames of a table. Rows of one layout (length of the step, tags) differ in numbers only."""
    step = table.step.astype(np.int64).view(np.uint64)
    digits = np.ones(len(step), dtype=np.int64)
    for seven in range(1, 10):
        digits += step >= np.uint64(1) << np.uint64(7 * seven)
    left_out = np.zeros(len(step), dtype=np.int64)
    for bit, tag in enumerate(sorted(table.optional)):
        left_out |= np.isnan(table.values[tag]).astype(np.int64) << bit
    kinds, kind_of = np.unique(digits * 1024 + left_out, return_inverse=True)
    parts: list[tuple[NDArray[np.int64], Bytes]] = []
    num_values = 0
    lengths = np.zeros(len(step), dtype=np.int64)
    for kind, key in enumerate(kinds.tolist()):
        rows = np.flatnonzero(kind_of == kind)
        gone = {tag for bit, tag in enumerate(sorted(table.optional)) if key % 1024 >> bit & 1}
        values = [(tag, column[rows]) for tag, column in table.values.items() if tag not in gone]
        frames = _frames(step[rows], table.wall[rows], values, key // 1024)
        lengths[rows] = frames.shape[1]
        num_values += len(rows) * len(values)
        parts.append((rows, frames))
    if len(parts) == 1:
        return parts[0][1].tobytes(), num_values
    starts = np.cumsum(lengths) - lengths
    found = np.zeros(int(lengths.sum()), dtype=np.uint8)
    for rows, frames in parts:
        found[starts[rows][:, None] + np.arange(frames.shape[1])] = frames
    return found.tobytes(), num_values


def _frames(step: NDArray[np.uint64], wall: Floats, values: Sequence[tuple[str, Floats]], digits: int) -> Bytes:
    """Return one frame a row: a template, with the numbers and the checksums set."""
    shape = _shape(tuple(tag for tag, _ in values), digits)
    found = np.empty((len(step), len(shape.frame)), dtype=np.uint8)
    found[:] = np.frombuffer(shape.frame, dtype=np.uint8)
    event = found[:, 12:-4]
    event[:, 1:9] = wall.astype("<f8").view(np.uint8).reshape(-1, 8)
    for digit in range(digits):
        more = 0x80 if digit < digits - 1 else 0
        event[:, 10 + digit] = ((step >> np.uint64(7 * digit)) & np.uint64(0x7F)).astype(np.uint8) | more
    with np.errstate(over="ignore"):  # too large for a float is infinite
        for place, (_, column) in zip(shape.places, values, strict=True):
            event[:, place : place + 4] = column.astype("<f4").view(np.uint8).reshape(-1, 4)
    sums = np.full(len(step), shape.crc, dtype=np.uint32)
    for place, table in shape.tables:
        sums ^= table[event[:, place]]
    masked = (sums >> np.uint32(15) | sums << np.uint32(17)) + np.uint32(0xA282EAD8)
    found[:, -4:] = masked.astype("<u4").view(np.uint8).reshape(-1, 4)
    return found


@dataclass(frozen=True, slots=True)
class _Shape:
    """What all frames with the same tags and the same length of the step have in common."""

    frame: bytes
    """A whole frame in which the numbers are zeros."""
    places: tuple[int, ...]
    """Where the values are in its event."""
    crc: int
    """The checksum of that event."""
    tables: tuple[tuple[int, NDArray[np.uint32]], ...]
    """Where the bytes that differ are, and by what each value of such a byte changes the checksum."""


@lru_cache(maxsize=64)
def _shape(tags: tuple[str, ...], digits: int) -> _Shape:
    summary, ends = b"", []
    for tag in tags:
        summary += field_bytes(1, scalar_value(tag, 0.0))
        ends.append(len(summary))
    body = field_double(1, 0.0) + b"\x10" + bytes(digits) + field_bytes(5, summary)
    places = [len(body) - len(summary) + end - 4 for end in ends]
    changing = {*range(1, 9), *range(10, 10 + digits), *(place + at for place in places for at in range(4))}
    # A checksum is linear: each byte changes it on its own, whatever the others are, by its value and its distance
    # from the end. So only the bytes that differ are looked at, a fifth of them.
    single = np.array(crc_table(), dtype=np.uint32)
    tables, moved = [], single
    for place in reversed(range(len(body))):
        if place in changing:
            tables.append((place, moved))
        moved = single[moved & np.uint32(0xFF)] ^ (moved >> np.uint32(8))
    length = struct.pack("<Q", len(body))
    frame = length + masked_crc(length, crc_table()) + body + bytes(4)
    return _Shape(frame, tuple(places), crc(body, crc_table()), tuple(tables))


def write_events(path: Path, points: Iterable[Point]) -> int:
    """Write one event file and return how many values it holds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = crc_table()
    num_values = 0
    with open_new(path) as file:
        file.write(frame(field_double(1, 0.0) + field_bytes(3, FIRST), table))
        for step, wall, values in points:
            summary = b"".join(field_bytes(1, scalar_value(tag, value)) for tag, value in values.items())
            event = field_double(1, wall) + field_int(2, step) + field_bytes(5, summary)
            file.write(frame(event, table))
            num_values += len(values)
    return num_values
