"""What ranks print: kept byte for byte in a file a rank, and line by line, merged by arrival, in the run's log.

The merged log is what screens and reports show later, so secrets this process knows are hidden when it is written: a
later reader cannot know them (decision 0033).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from headway.redact import hide_known

LINE_BYTES: Final = 1 << 14
"""A longer line is cut into pieces of this size in the merged log; the rank's own file keeps it whole."""
TAIL_BYTES: Final = 1 << 16


class AppendFile:
    """A file that is only added to. A full disk costs the lines it costs, is marked in the file, and never more.

    With `head_bytes` a file that has reached that size stays as it is, and what follows goes to `NAME.tail`, which
    becomes `NAME.tail.old` when it is as large: beginning and end of a flood are kept, its middle is not.
    """

    def __init__(self, path: Path, on_gap: Callable[[Path, OSError], None], head_bytes: int | None = None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._on_gap, self._head_bytes = path, on_gap, head_bytes
        self._fd = _open_append(path)
        self._is_tail = False
        self._size = os.fstat(self._fd).st_size
        if head_bytes is not None and self._size >= head_bytes:
            self._turn()
        self._lost_bytes = 0

    def write(self, data: bytes) -> None:
        """Add bytes; what the disk does not take is counted and reported once."""
        if self._lost_bytes:
            data = b"\n[headway: %d bytes could not be written here]\n" % self._lost_bytes + data
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as err:
            if not self._lost_bytes:
                self._on_gap(self._path, err)
            self._lost_bytes += len(view)
            return
        self._lost_bytes = 0
        self._size += len(data)
        if self._head_bytes is not None and self._size >= self._head_bytes:
            self._turn()

    def _turn(self) -> None:
        """Continue in a fresh tail."""
        tail = self._path.with_name(self._path.name + ".tail")
        with contextlib.suppress(OSError):  # a disk that refuses keeps the file it has
            if self._is_tail:
                tail.replace(tail.with_name(tail.name + ".old"))
            else:
                os.write(self._fd, b"\n[headway: this log goes on in %s]\n" % os.fsencode(tail.name))
            fresh = _open_append(tail)
            os.close(self._fd)
            self._fd, self._is_tail = fresh, True
            self._size = os.fstat(fresh).st_size

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class LineCutter:
    """Cuts a byte stream into lines; holds at most one piece of a line, however long the line is.

    With `folds_bars`, of a bar that draws itself again and again (`\\r`) a line is its last state.
    """

    def __init__(self, folds_bars: bool = False) -> None:
        self._rest = b""
        self._fold = _last_state if folds_bars else bytes
        self._shorten = _shorten if folds_bars else bytes

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines completed by these bytes, without their ends."""
        *lines, rest = (self._rest + data).split(b"\n")
        pieces = [piece for line in lines for piece in _cut(self._fold(line))]
        *full, self._rest = _cut(self._shorten(rest))
        return pieces + full

    def bar(self) -> bytes | None:
        """Return the state of a bar that is being drawn, or None."""
        if b"\r" not in self._rest:
            return None
        states = [state for state in self._rest.split(b"\r") if state.strip()]
        return states[-1] if states else None

    def finish(self) -> list[bytes]:
        """Return what is left without a line end."""
        rest, self._rest = self._fold(self._rest), b""
        return [rest] if rest else []


class Sink(Protocol):
    """Where the bytes of one rank go: its own file, or the link to the node that keeps it."""

    def write(self, data: bytes) -> None:
        """Take bytes."""

    def close(self) -> None:
        """Take no more."""


class RankOutput:
    """Takes one rank's output to its own file, to the merged log and to whoever watches."""

    def __init__(
        self,
        rank: int,
        own: Sink,
        merged: AppendFile | None,
        on_lines: Callable[[int, list[bytes]], None],
        on_bar: Callable[[int, bytes], None] | None = None,
    ) -> None:
        self._rank, self._own, self._merged, self._on_lines, self._on_bar = rank, own, merged, on_lines, on_bar
        self._cutter = LineCutter(folds_bars=on_bar is not None)
        self._tail = b""

    def feed(self, data: bytes) -> None:
        """Keep a chunk of output."""
        self._own.write(data)
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        self._merge(self._cutter.feed(data))
        if self._on_bar is not None and (state := self._cutter.bar()) is not None:
            self._on_bar(self._rank, state)

    def tail(self) -> bytes:
        """Return the last of what the rank printed in this attempt."""
        return self._tail

    def close(self) -> None:
        """Keep an unfinished last line and close the rank's file."""
        self._merge(self._cutter.finish())
        self._own.close()

    def _merge(self, lines: list[bytes]) -> None:
        merge_lines(self._merged, str(self._rank), lines)
        if lines:
            self._on_lines(self._rank, lines)


def merge_lines(merged: AppendFile | None, who: str, lines: list[bytes]) -> None:
    """Add lines to the merged log, if it is ours, with the time they arrived and who printed them."""
    if not lines or merged is None:
        return
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now)) + f".{int(now * 1000) % 1000:03d}"
    head = f"{stamp} [{who}] ".encode()
    shown = hide_known(b"\n".join(lines)).split(b"\n")
    merged.write(b"".join([head + line + b"\n" for line in shown]))


def read_ready(fd: int, most_bytes: int) -> tuple[bytes, bool]:
    """Return what a non-blocking pipe holds, up to a limit, and whether its writers are gone."""
    chunks: list[bytes] = []
    size = 0
    with contextlib.suppress(BlockingIOError):
        while size < most_bytes:
            chunk = os.read(fd, min(1 << 16, most_bytes - size))
            if not chunk:
                return b"".join(chunks), True
            chunks.append(chunk)
            size += len(chunk)
    return b"".join(chunks), False


def _open_append(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)


def _last_state(line: bytes) -> bytes:
    """Return what a bar showed last; a line with fewer than two returns in it is not a bar and stays as it is."""
    if line[:-1].count(b"\r") < 2:  # the last one may belong to the line's end
        return line
    states = [state for state in line.split(b"\r") if state.strip()]
    return states[-1] if states else b""


def _shorten(rest: bytes) -> bytes:
    """Keep what a bar without an end shows now, and what it may be about to show."""
    if rest.count(b"\r") <= 4:
        return rest
    *states, last = rest.split(b"\r")
    shown = next((state for state in reversed(states) if state.strip()), b"")
    return b"\r\r" + shown + b"\r" + last


def _cut(line: bytes) -> list[bytes]:
    if len(line) <= LINE_BYTES:
        return [line]
    return [line[at : at + LINE_BYTES] for at in range(0, len(line), LINE_BYTES)]
