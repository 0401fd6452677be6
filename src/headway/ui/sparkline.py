"""A few values along a run, found by jumping through its file: a table of many runs reads a few kilobytes of each."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Final

from headway.telemetry import number, open_regular

_POINTS: Final = 32
_LINE_BYTES: Final = 1024


def read_sparkline(path: Path, num: int = _POINTS, key: str = "loss") -> list[float]:
    """Return at most `num` values of a column, evenly along the file."""
    try:
        fd = open_regular(path)
    except OSError:
        return []
    try:
        size = os.fstat(fd).st_size
        if size <= num * _LINE_BYTES:  # short: all of it
            return _pick([_value(line, key) for line in os.pread(fd, size, 0).split(b"\n")[:-1]], num)
        places = [at * (size - _LINE_BYTES) // (num - 1) for at in range(num)]
        return _pick([_value(_whole_line(os.pread(fd, _LINE_BYTES, place), place), key) for place in places], num)
    except OSError:
        return []
    finally:
        os.close(fd)


def _whole_line(part: bytes, place: int) -> bytes:
    """Return the first whole line: the one that a jump lands in is torn."""
    lines = part.split(b"\n")
    return lines[0] if place == 0 else lines[1] if len(lines) > 2 else b""


def _pick(found: list[float | None], num: int) -> list[float]:
    values = [value for value in found if value is not None]
    return [values[at * (len(values) - 1) // (num - 1)] for at in range(num)] if len(values) > num else values


def _value(line: bytes, key: str) -> float | None:
    try:
        found = number(json.loads(line).get(key))
    except (ValueError, AttributeError, RecursionError):
        return None
    return found if math.isfinite(found) else None
