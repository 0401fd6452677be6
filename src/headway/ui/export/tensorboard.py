"""TensorBoard event files, written by hand: TFRecord frames around small protobuf messages.

The format is public and has not changed in years (TFRecord framing with masked CRC-32C; `Event` and `Summary` of
tensorflow/core). Writing it takes these few lines, so nobody needs TensorBoard installed to train.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from headway.ui.rows import open_new

Point = tuple[int, float, Mapping[str, float]]
"""Step, unix seconds, tag to value."""

_POLYNOMIAL: Final = 0x82F63B78


def write_events(path: Path, points: Iterable[Point]) -> int:
    """Write one event file and return how many values it holds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = _crc_table()
    num_values = 0
    with open_new(path) as file:
        # TensorBoard reads `brain.Event:2` first; a file without it is taken for an old format.
        file.write(_frame(_field_double(1, 0.0) + _field_bytes(3, b"brain.Event:2"), table))
        for step, wall, values in points:
            summary = b"".join(_field_bytes(1, _value(tag, value)) for tag, value in values.items())
            event = _field_double(1, wall) + _field_int(2, step) + _field_bytes(5, summary)
            file.write(_frame(event, table))
            num_values += len(values)
    return num_values


def _value(tag: str, value: float) -> bytes:
    return _field_bytes(1, tag.encode("utf-8", "replace")) + b"\x15" + _float32(value)


def _float32(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def _field_double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _field_int(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value & (1 << 64) - 1)


def _field_bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _frame(data: bytes, table: list[int]) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _masked_crc(length, table) + data + _masked_crc(data, table)


def _masked_crc(data: bytes, table: list[int]) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    # The mask keeps a checksum of data that holds checksums from cancelling out (TFRecord's own rule).
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _crc_table() -> list[int]:
    """Return the table of CRC-32C (Castagnoli), one byte at a time."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table
