"""A window on a log of any length: from a place, around a match, or at the first error; repeated lines are folded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from headway.redact import redact_lines
from headway.telemetry import RunDir, open_regular
from headway.ui.text import clean_text

_WINDOW_BYTES: Final = 48 << 10
_MOST_LINES: Final = 400
_MOST_LINE: Final = 2000
_MOST_MATCHES: Final = 200
_CHUNK: Final = 1 << 20
_MOST_SEARCHED: Final = 512 << 20
_ERROR: Final = re.compile(
    rb"Traceback \(most recent call last\)|\b\w*(?:Error|Exception)\b:|\bERROR\b|\bFATAL\b|\bFailed\b"
    rb"|CUDA out of memory|\bKilled\b"
)
_WARNING: Final = re.compile(r"\bwarn(?:ing)?\b", re.IGNORECASE)
_BAD: Final = re.compile(
    r"Traceback|\b\w*(?:Error|Exception)\b|\bERROR\b|\bFATAL\b|\bFailed\b|out of memory|\bKilled\b"
)
_RANK: Final = re.compile(r"^\[?(?:rank )?(\d{1,4})[\]:] ?")

Level = Literal["", "warn", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line as it is shown."""

    at: int
    """Where it begins in the log."""
    text: str
    level: Level
    times: int = 1
    """How often it is there one after the other, from whichever rank."""
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWindow:
    """A stretch of a log."""

    lines: list[LogLine]
    start: int
    end: int
    size: int
    is_cut: bool = False
    """More matches than are shown."""


def log_files(run: RunDir, rank: int | None) -> list[Path]:
    """Return the files of a log in order; a long one continues in its tail."""
    path = run.log if rank is None else run.stdout(rank)
    return [path, path.with_name(f"{path.name}.tail.old"), path.with_name(f"{path.name}.tail")]


class _Joined:
    """Several files read as one."""

    def __init__(self, files: list[Path]) -> None:
        self._parts: list[tuple[int, int, int]] = []
        self.size = 0
        for path in files:
            try:
                fd = open_regular(path)
            except OSError:
                continue
            length = os.fstat(fd).st_size
            self._parts.append((self.size, length, fd))
            self.size += length

    def read(self, start: int, num: int) -> bytes:
        found = b""
        for begin, length, fd in self._parts:
            low, high = max(start, begin), min(start + num, begin + length)
            if low < high:
                found += os.pread(fd, high - low, low - begin)
        return found

    def close(self) -> None:
        for _, _, fd in self._parts:
            os.close(fd)


def read_window(run: RunDir, rank: int | None, at: int | None) -> LogWindow:
    """Return the lines from a place on; none: the last ones."""
    joined = _Joined(log_files(run, rank))
    try:
        start = joined.size - _WINDOW_BYTES if at is None else at
        start = max(0, min(start, joined.size))
        data = joined.read(start, _WINDOW_BYTES)
        if start > 0 and at is None:
            cut = data.find(b"\n") + 1
            cut = cut if cut < len(data) else 0  # one line that is longer than the window: its end is shown
            start, data = start + cut, data[cut:]
        if start + len(data) < joined.size and b"\n" in data:
            data = data[: data.rfind(b"\n") + 1]
        lines = data.split(b"\n")
        lines = lines[:-1] if lines and not lines[-1] else lines
        if at is None and len(lines) > _MOST_LINES:
            left_out = lines[:-_MOST_LINES]
            start += sum(len(line) + 1 for line in left_out)
            lines = lines[-_MOST_LINES:]
        lines = lines[:_MOST_LINES]
        end = start + sum(len(line) + 1 for line in lines)
        return LogWindow(lines=_fold(start, lines), start=start, end=min(end, joined.size), size=joined.size)
    finally:
        joined.close()


def before(window: LogWindow, run: RunDir, rank: int | None) -> int:
    """Return where the window before this one begins: at the beginning of a line."""
    target = max(0, window.start - _WINDOW_BYTES // 2)
    if target == 0:
        return 0
    joined = _Joined(log_files(run, rank))
    try:
        found = joined.read(target, _MOST_LINE * 4).find(b"\n")
    finally:
        joined.close()
    return target if found < 0 else min(window.start, target + found + 1)


def search(run: RunDir, rank: int | None, text: str) -> LogWindow:
    """Return the lines that hold a text, in any case."""
    wanted = text.casefold().encode("utf-8", "surrogatepass")
    joined = _Joined(log_files(run, rank))
    found: list[tuple[int, bytes]] = []
    try:
        for at, line in _lines(joined):
            if wanted in line.decode("utf-8", "replace").casefold().encode("utf-8", "replace"):
                found.append((at, line))
                if len(found) > _MOST_MATCHES:
                    break
    finally:
        joined.close()
    is_cut = len(found) > _MOST_MATCHES
    shown = [_line(at, line) for at, line in found[:_MOST_MATCHES]]
    shown = _hide(shown)
    return LogWindow(lines=shown, start=0, end=joined.size, size=joined.size, is_cut=is_cut)


def first_error(run: RunDir, rank: int | None) -> int | None:
    """Return where the first error of a log is; None: there is none."""
    joined = _Joined(log_files(run, rank))
    try:
        place, rest = 0, b""
        while place < min(joined.size, _MOST_SEARCHED):
            data = rest + joined.read(place, _CHUNK)
            if found := _ERROR.search(data):
                at = place - len(rest) + found.start()
                return place - len(rest) + data.rfind(b"\n", 0, at - place + len(rest)) + 1
            place += _CHUNK
            rest = data[-200:]
    finally:
        joined.close()
    return None


def _lines(joined: _Joined) -> Iterator[tuple[int, bytes]]:
    """Yield every line with the place where it begins."""
    place, rest, start = 0, b"", 0
    while place < min(joined.size, _MOST_SEARCHED):
        data = joined.read(place, _CHUNK)
        if not data:
            break
        place += len(data)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield start, line[:_MOST_LINE]
            start += len(line) + 1
    if rest:
        yield start, rest[:_MOST_LINE]


def _fold(start: int, lines: list[bytes]) -> list[LogLine]:
    shown: list[LogLine] = []
    place = start
    for line in lines:
        one = _line(place, line)
        place += len(line) + 1
        if shown and _bare(shown[-1].text) == _bare(one.text) and one.text.strip():
            shown[-1] = replace(shown[-1], times=shown[-1].times + 1)
        else:
            shown.append(one)
    return _hide(shown)


def _hide(lines: list[LogLine]) -> list[LogLine]:
    """Return the lines without secrets; one that goes over several lines, as a private key does, becomes one."""
    texts = redact_lines([line.text for line in lines]) if lines else []
    if len(texts) == len(lines):
        return [replace(line, text=text) for line, text in zip(lines, texts, strict=True)]
    return [replace(lines[min(at, len(lines) - 1)], text=text, times=1) for at, text in enumerate(texts)]


def _line(at: int, line: bytes) -> LogLine:
    text = clean_text(line[:_MOST_LINE].rpartition(b"\r")[2].decode("utf-8", "replace") or "")
    rank = _RANK.match(text)
    level: Level = "bad" if _BAD.search(text) else "warn" if _WARNING.search(text) else ""
    return LogLine(at=at, text=text, level=level, rank=int(rank[1]) if rank else None)


def _bare(text: str) -> str:
    """Return a line without the rank in front of it: eight ranks that say the same say it once."""
    return _RANK.sub("", text, count=1)
