"""TensorBoard event files: TFRecord frames around small protobuf messages, written and read without TensorBoard.

The format is public and has not changed in years (TFRecord framing with masked CRC-32C; `Event` and `Summary` of
tensorflow/core). A file to be read may come from any program: lengths are bounded, checksums are checked, and what is
not understood is passed over.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from headway.telemetry.reading import open_regular

FIRST: Final = b"brain.Event:2"
"""TensorBoard reads it first; a file without it is taken for an old format."""
_POLYNOMIAL: Final = 0x82F63B78
_MOST_EVENT_BYTES: Final = 16 << 20
"""Of one event: a picture or a graph; a longer one is damage."""
_READ_BYTES: Final = 32 << 20
"""At most so much of a file in one go."""
_MOST_CHECKED: Final = 4096
"""Events of scalars are shorter; a checksum in Python takes its time, and pictures are passed over anyhow."""
_MOST_TAG: Final = 200


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number that a program has written."""

    tag: str
    step: int
    value: float
    t: float
    """Unix seconds."""


class ScalarFile:
    """Reads one event file bit by bit, as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self.is_damaged = False

    def read(self, most_bytes: int = _READ_BYTES) -> list[Scalar]:
        """Return the scalars of whole events that are new; after damage there are none any more."""
        if self.is_damaged:
            return []
        try:
            fd = open_regular(self.path)
        except OSError:
            return []
        with open(fd, "rb") as file:
            file.seek(self._offset)
            data = file.read(min(most_bytes, max(0, os.fstat(fd).st_size - self._offset)))
        found: list[Scalar] = []
        place = 0
        while place + 12 <= len(data):
            (length,) = struct.unpack_from("<Q", data, place)
            if (
                length > _MOST_EVENT_BYTES
                or masked_crc(data[place : place + 8], crc_table()) != data[place + 8 : place + 12]
            ):
                self.is_damaged = True
                break
            end = place + 12 + length + 4
            if end > len(data):
                break  # half written yet, or it stays so
            event = data[place + 12 : end - 4]
            if length <= _MOST_CHECKED:
                if masked_crc(event, crc_table()) != data[end - 4 : end]:
                    self.is_damaged = True
                    break
                found += _scalars(event)
            place = end
        self._offset += place
        return found


def _scalars(event: bytes) -> list[Scalar]:
    """Return the scalars of an event; what is not an event has none."""
    t, step, found = 0.0, 0, []
    try:
        for number, value in _fields(event):
            if number == 1 and isinstance(value, bytes) and len(value) == 8:
                (t,) = struct.unpack("<d", value)
            elif number == 2 and isinstance(value, int):
                step = value if value < 1 << 63 else value - (1 << 64)
            elif number == 5 and isinstance(value, bytes):
                found += [one for inner, data in _fields(value) if inner == 1 and (one := _tagged(data)) is not None]
    except (ValueError, IndexError, struct.error):
        return []
    return [Scalar(tag, step, value, t) for tag, value in found if step >= 0]


def _tagged(data: bytes | int) -> tuple[str, float] | None:
    """Return tag and number of one value of a summary: plain, or a tensor of one number as TF 2 writes."""
    if not isinstance(data, bytes):
        return None
    tag, value = "", math.nan
    has_value = False
    for number, inner in _fields(data):
        if number == 1 and isinstance(inner, bytes):
            tag = inner[:_MOST_TAG].decode("utf-8", "replace")
        elif number == 2 and isinstance(inner, bytes) and len(inner) == 4:
            (value,), has_value = struct.unpack("<f", inner), True
        elif number == 8 and isinstance(inner, bytes):
            found = _tensor(inner)
            if found is not None:
                value, has_value = found, True
    return (tag, value) if tag and has_value else None


def _tensor(data: bytes) -> float | None:
    """Return the number of a tensor that holds one, float or double."""
    kind, content = 0, b""
    for number, value in _fields(data):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number in (4, 5, 6) and isinstance(value, bytes):
            content = value
    if kind == 1 and len(content) == 4:
        return float(struct.unpack("<f", content)[0])
    return float(struct.unpack("<d", content)[0]) if kind == 2 and len(content) == 8 else None


def _fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield number and value of every field of a message.

    Raises:
        ValueError: it is none.
    """
    place = 0
    while place < len(data):
        key, place = _read_varint(data, place)
        match key & 7:
            case 0:
                value, place = _read_varint(data, place)
                yield key >> 3, value
            case 1:
                yield key >> 3, data[place : place + 8]
                place += 8
            case 2:
                length, place = _read_varint(data, place)
                if place + length > len(data):
                    raise ValueError("a field beyond its message")
                yield key >> 3, data[place : place + length]
                place += length
            case 5:
                yield key >> 3, data[place : place + 4]
                place += 4
            case _:
                raise ValueError("an unknown kind of field")


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("a number without an end")


def encode_scalars(step: int, t: float, values: Mapping[str, float]) -> bytes:
    """Return one event with some numbers, framed."""
    summary = b"".join(field_bytes(1, scalar_value(tag, value)) for tag, value in values.items())
    return frame(field_double(1, t) + field_int(2, step) + field_bytes(5, summary), crc_table())


def encode_first(t: float) -> bytes:
    """Return what an event file begins with."""
    return frame(field_double(1, t) + field_bytes(3, FIRST), crc_table())


def scalar_value(tag: str, value: float) -> bytes:
    """Return one value of a summary."""
    return field_bytes(1, tag.encode("utf-8", "replace")) + b"\x15" + float32(value)


def float32(value: float) -> bytes:
    """Return a number as the format holds it; one too large for it is infinite."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def field_double(number: int, value: float) -> bytes:
    """Return a field that holds a double."""
    return varint(number << 3 | 1) + struct.pack("<d", value)


def field_int(number: int, value: int) -> bytes:
    """Return a field that holds a whole number."""
    return varint(number << 3) + varint(value & (1 << 64) - 1)


def field_bytes(number: int, data: bytes) -> bytes:
    """Return a field that holds bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    """Return a whole number in sevens of bits."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def frame(data: bytes, table: list[int]) -> bytes:
    """Return a TFRecord frame."""
    length = struct.pack("<Q", len(data))
    return length + masked_crc(length, table) + data + masked_crc(data, table)


def crc(data: bytes, table: list[int]) -> int:
    """Return the CRC-32C of some bytes."""
    value = 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def masked_crc(data: bytes, table: list[int]) -> bytes:
    """Return it as TFRecord writes it."""
    value = crc(data, table)
    # The mask keeps a checksum of data that holds checksums from cancelling out (TFRecord's own rule).
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@lru_cache(maxsize=1)
def crc_table() -> list[int]:
    """Return the table of CRC-32C (Castagnoli), one byte at a time."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table
