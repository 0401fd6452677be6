"""JSON lines that survive a torn end: one object a line, read and repaired without trusting the last one."""

from __future__ import annotations

import ctypes
import json
import math
import os
from pathlib import Path
from typing import Any, Final

from headway.telemetry.reading import open_beneath, read_part

_KEEP_SIZE: Final = 1
"""FALLOC_FL_KEEP_SIZE of <linux/falloc.h>."""
_NAMED: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def plain(value: Any) -> Any:
    """Return the value as JSON can hold it: NaN and Inf by name, anything unknown as text."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _NAMED[repr(float(value))]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value)


def number(value: Any) -> float:
    """Return a number read from JSON as a float; an absent or unreadable one is NaN."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def encode_line(record: dict[str, Any]) -> bytes:
    """Return one line. Bytes that were not UTF-8 in a log (lone surrogates) become JSON escapes."""
    text = json.dumps(plain(record), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def decode_lines(data: bytes) -> list[dict[str, Any]]:
    """Return every object of the lines; what is not an object (a torn line, a hole of zeros) is left out."""
    lines = [line for line in data.split(b"\n") if line]
    try:
        # One call for all lines is quicker than a call a line (10^5 metric lines: 1.0 s against 1.8 s).
        found = json.loads(b"[" + b",".join(lines) + b"]")
    except (ValueError, RecursionError):
        found = [_decode(line) for line in lines]
    else:
        # A comma inside a torn line can make two things of one; then the cheap way cannot be trusted.
        if len(found) != len(lines):
            found = [_decode(line) for line in lines]
    return [record for record in found if isinstance(record, dict)]


def _decode(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def read_objects(path: Path, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """Return the objects of all finished lines from an offset on, and the offset to continue from."""
    data = read_part(path, offset)
    end = data.rfind(b"\n") + 1
    return decode_lines(data[:end]), offset + end


def read_tail(path: Path, num_bytes: int) -> bytes:
    """Return the end of a file, from the first whole line in it on."""
    # One byte more tells whether the part begins with a whole line.
    data = read_part(path, -num_bytes - 1, num_bytes + 1)
    return data[data.find(b"\n") + 1 :] if len(data) > num_bytes else data


def read_log_tail(path: Path, num_bytes: int) -> bytes:
    """Return the end of a log, which continues in `NAME.tail` once it is long, from the first whole line in it on."""
    found = b""
    for name in (f"{path.name}.tail", f"{path.name}.tail.old", path.name):
        if len(found) >= num_bytes:
            break
        found = read_tail(path.with_name(name), num_bytes - len(found)) + found
    return found


def open_lines(path: Path) -> int:
    """Open a file of lines for appending; a torn last line is moved to `<name>.torn` first.

    Without this the next line would be glued to the torn one and both would be lost.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = open_beneath(path, os.O_RDWR | os.O_APPEND)
    try:
        _mend_end(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _mend_end(fd: int, path: Path) -> None:
    size = os.fstat(fd).st_size
    if size == 0 or os.pread(fd, 1, size - 1) == b"\n":
        return
    start, tail = size, b""
    while start > 0 and b"\n" not in tail:
        step = min(start, 1 << 16)
        start -= step
        tail = os.pread(fd, step, start) + tail
    torn = tail[tail.rfind(b"\n") + 1 :]
    if isinstance(_decode(torn), dict):
        os.write(fd, b"\n")
        return
    with open(open_beneath(path.with_name(f"{path.name}.torn"), os.O_WRONLY | os.O_APPEND), "ab") as aside:
        aside.write(torn + b"\n")
    os.ftruncate(fd, size - len(torn))


def write_all(fd: int, data: bytes) -> bytes:
    """Write what can be written and return what is left; a full disk leaves the rest for a later try."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except OSError:
            break
    return bytes(view)


def reserve(fd: int, num_bytes: int) -> int:
    """Take room behind the end of a file without making it longer; return how much, 0 where the disk knows no such."""
    try:
        # os.posix_fallocate would make the file longer, and a reader would see a hole of zeros.
        size = ctypes.c_int64(os.fstat(fd).st_size)
        done = ctypes.CDLL(None).fallocate(ctypes.c_int(fd), ctypes.c_int(_KEEP_SIZE), size, ctypes.c_int64(num_bytes))
    except (OSError, AttributeError):
        return 0
    return num_bytes if done == 0 else 0
