"""The border to the terminal: what we print cannot steer it, and nobody who stops reading can stop us.

Names, paths, config keys and texts of exceptions come from files and other people. `clean_streams` puts a filter in
front of stdout and stderr, so that every control character is shown as an escape; what draws bars and colours cleans
its own text and writes to `trusted(stream)`. `unblocked_streams` hands all writing to a thread: a pager that is not
read, or a reader that has gone, must neither block a supervisor nor change how its run ends.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO, Any, Final, ParamSpec, TextIO, TypeVar

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CONTROL_BYTES: Final = re.compile(
    rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]"
)
_QUEUE_BYTES: Final = 4 << 20
"""What may wait for a slow reader; everything a rank prints is in the run's log as well."""
_PATIENCE_S: Final = 5.0
"""How long the end of a command waits for a reader that takes nothing."""
P = ParamSpec("P")
R = TypeVar("R")


def clean_output(text: str) -> str:
    """Return text whose control characters are shown, line ends and tabs apart."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class ReaderGone(Exception):  # noqa: N818 - an end, not a fault
    """Whoever read our output has closed it. No OSError: click and rich would make exit code 1 of it."""


class _CleanBytes(io.RawIOBase):
    """The binary side of a clean stream: JSON goes here, so controls become JSON's own escapes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:  # Any: whatever has a buffer
        text = _CONTROL_BYTES.sub(_json_escape, bytes(data))
        target = getattr(self._stream, "buffer", None)
        with _told_gone():
            self._stream.flush()
            if target is not None:
                target.write(text)
                target.flush()
            else:
                self._stream.write(text.decode("utf-8", "replace"))
        return len(data)

    def flush(self) -> None:
        with _told_gone():
            self._stream.flush()


@contextlib.contextmanager
def _told_gone() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as err:
        raise ReaderGone from err


def _json_escape(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode("utf-8"))


class _CleanStream(io.TextIOBase):
    """A text stream that shows control characters instead of sending them."""

    def __init__(self, stream: Any) -> None:  # Any: what Python, a test or we ourselves have put there
        self.trusted: TextIO = stream
        self.buffer = _CleanBytes(stream)

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute in typeshed
        return getattr(self.trusted, "encoding", None) or "utf-8"

    @property
    def errors(self) -> str | None:  # type: ignore[override]  # as above
        return getattr(self.trusted, "errors", None)

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with _told_gone():
            self.trusted.write(clean_output(text))
        return len(text)

    def flush(self) -> None:
        with _told_gone():
            self.trusted.flush()

    def isatty(self) -> bool:
        return self.trusted.isatty()

    def fileno(self) -> int:
        return self.trusted.fileno()


def trusted(stream: TextIO) -> TextIO:
    """Return the stream behind the filter, for what has cleaned its text and draws with escape sequences of its own."""
    return stream.trusted if isinstance(stream, _CleanStream) else stream


def open_standard_files() -> None:
    """Open what was closed around us (`>&-`): the next file we open would take its number, and get its output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    if sys.stdout is None or sys.stderr is None:
        # Over the descriptor just opened: a process that may open few files has none to waste.
        nowhere = open(1 if sys.stdout is None else 2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - it stays
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere


@contextlib.contextmanager
def clean_streams() -> Iterator[None]:
    """Filter stdout and stderr."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_cleaned, before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _cleaned(stream: Any) -> Any:  # Any: None in a process that was started without the descriptor
    return stream if stream is None or isinstance(stream, _CleanStream) else _CleanStream(stream)


class _Queue:
    """Bytes on their way to one file, written by a thread; a failing file swallows them."""

    def __init__(self, fd: int) -> None:
        # One of its own: the thread may still hold it when the stream is closed and its number means another file.
        self._fd = os.dup(fd)
        self._parts: deque[bytes] = deque()
        self._size = self._lost = 0
        self._written = 0
        self._is_dead = self._is_closed = False
        self._change = threading.Condition()
        threading.Thread(target=self._run, name="headway-output", daemon=True).start()

    def put(self, data: bytes) -> None:
        with self._change:
            if self._is_dead:
                return
            if self._size + len(data) > _QUEUE_BYTES:
                self._lost += data.count(b"\n") or 1
                return
            if self._lost:
                data = b"[headway: %d lines not shown, nobody read them]\n" % self._lost + data
                self._lost = 0
            self._parts.append(data)
            self._size += len(data)
            self._change.notify_all()

    def drain(self) -> None:
        """Wait until all is written, as long as somebody reads."""
        with self._change:
            seen, since = self._written, time.monotonic()
            while self._size and not self._is_dead and time.monotonic() - since < _PATIENCE_S:
                self._change.wait(0.2)
                if self._written != seen:
                    seen, since = self._written, time.monotonic()

    def close(self) -> None:
        """Let the thread end; what nobody has read by now is given up."""
        with self._change:
            self._is_closed = self._is_dead = True
            self._parts.clear()
            self._size = 0
            self._change.notify_all()

    def _run(self) -> None:
        while True:
            with self._change:
                while not self._parts and not self._is_closed:
                    self._change.wait()
                if self._is_closed:
                    os.close(self._fd)
                    return
                part = self._parts[0]
            try:
                num = os.write(self._fd, part[: 1 << 16])
            except OSError:  # the reader is gone, the disk is full, the terminal is closed: nothing more can be said
                num = len(part)
                self._is_dead = self._is_dead or not _is_file(self._fd)
            with self._change:
                self._written += num
                self._size -= num
                if self._parts and num < len(part):
                    self._parts[0] = part[num:]
                elif self._parts:
                    self._parts.popleft()
                if self._is_dead:
                    self._parts.clear()
                    self._size = 0
                self._change.notify_all()


def _is_file(fd: int) -> bool:
    """A full disk may have room again, and a closed terminal is followed by a log; a reader that has gone is gone."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return (mode & 0o170000) not in (0o010000, 0o140000)


class _QueuedBytes(io.RawIOBase):
    def __init__(self, queue: _Queue) -> None:
        self._queue = queue

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:  # Any: whatever has a buffer
        self._queue.put(bytes(data))
        return len(data)


class _QueuedStream(io.TextIOBase):
    """A text stream whose writing never waits and never fails."""

    def __init__(self, stream: Any, queue: _Queue) -> None:  # Any: what Python or a test has put there
        self._stream, self._queue = stream, queue
        self.buffer = _QueuedBytes(queue)

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute in typeshed
        return getattr(self._stream, "encoding", None) or "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        errors = getattr(self._stream, "errors", None) or "replace"
        self._queue.put(text.encode(self.encoding, "replace" if errors == "strict" else errors))
        return len(text)

    def isatty(self) -> bool:
        return bool(self._stream.isatty())

    def fileno(self) -> int:
        return int(self._stream.fileno())


@contextlib.contextmanager
def unblocked_streams() -> Iterator[None]:
    """Let stdout and stderr be written by threads, one for each place they lead to, until the end of the command."""
    before = sys.stdout, sys.stderr
    queues: dict[tuple[int, int], _Queue] = {}
    sys.stdout, sys.stderr = (_unblocked(stream, queues) for stream in before)
    try:
        yield
    finally:
        for queue in queues.values():
            queue.drain()
            queue.close()
        sys.stdout, sys.stderr = before


def _unblocked(stream: Any, queues: dict[tuple[int, int], _Queue]) -> Any:  # Any: None, or what a test has put there
    real: IO[str] | None = None if stream is None else trusted(stream)
    if real is None:
        return stream
    try:
        fd = real.fileno()
        seen = os.fstat(fd)
        real.flush()
    except (OSError, ValueError):
        return stream
    # Both streams on one terminal keep their order; a file of its own must not wait for a pipe that nobody reads.
    place = (seen.st_dev, seen.st_ino)
    if place not in queues:
        queues[place] = _Queue(fd)
    return _CleanStream(_QueuedStream(real, queues[place]))


def unblocked(function: Callable[P, R]) -> Callable[P, R]:
    """Run a command that supervises with output that nobody can block."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with unblocked_streams():
            return function(*args, **kwargs)

    return run
