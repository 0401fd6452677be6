"""From a log of any size to the lines worth reading: a search for a few words first, then lines without their dress.

A small log is read whole. Of a large one the surroundings of every line with an alarming word are read, as long as they
fit into a budget: then the first and the last of them, because a cause is early and the end says how it ended.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

SCANNED: Final = (
    *("error", "exception", "traceback", "fail", "kill", "abort", "signal", "cancel", "timeout", "timed out", " nan"),
    *("=nan", ":nan", "no s", "denied", "interrupt", "exit", "terminat", "segmentation"),
)
"""Lower-case words that a large log is searched for; each one costs half a second per GB."""
WORDS: Final = (
    *SCANNED,
    *("out of memory", "unable", "cannot", "invalid", "assert", "quota", "preempt", "nan", "not found", "missing"),
    *("mismatch", "too many", "hangup", "must", "bus error", "no gpu", "no cuda", "no module", "not installed", "oom"),
    *("stuck", "times out", "watchdog", "corrupt", "doesn't", "could not", "couldn't", "no builder"),
    *(
        "unknown",
        "undefined",
        "unsupported",
        "not support",
        "illegal",
        "unexpected",
        "unreachable",
        "lost",
        "sigterm",
        "sigkill",
    ),
    *("错误", "失败", "异常", "超时", "不足", "不存在"),
)
"""A line without any of these is evidence of nothing."""
_LOWER: Final = bytes(range(256)).lower()
_CHUNK: Final = 4 << 20
_WHOLE: Final = 3 << 20
"""A log up to this size is read whole."""
_BEFORE, _AFTER = 2 << 10, 16 << 10
"""How much around an alarming word is read: the beginning of its line, and a traceback behind it."""
_EDGE: Final = 128 << 10
_BUDGET: Final = 2 << 20
"""For the first finds, and again for the last."""
_WIDE: Final = 600
"""A line longer than this may be several that a terminal or a web page has joined: blanks are where they ended."""
_LOST_ENDS: Final = re.compile(r" {12,}(?=[\w\[(])")
_LINE: Final = 8192
"""Characters of one line that are read: what matters is at its beginning, or at its end."""
_ANSI: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)|[@-Z\\-_])|\[[0-9;]{1,5}m(?=[(\w])"
)
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff]")
_PREFIXES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"\[rank(?P<rank>\d+)\]:\s?",
        r"(?:- )?[\w.]{1,60} - (?:DEBUG|INFO|WARNING|ERROR) - "
        r"(?=\[rank\d|\s*File \"|Traceback|[\w.]+(?:Error|Exception)\b)",
        r"\[(?:default|local_?rank|worker|RANK|Rank|rank|tid|proc)[ _-]?(?P<rank>\d+)\][:|]?\s?",
        r"\[\d+,(?P<rank>\d+)\]<std(?:err|out)>:\s?",
        r"\((?P<who>[\w.-]{2,60}(?: pid=\d+)(?:, ip=[\d.]+)?)\)\s?",
        r"\(?(?:pid|train pid|ray::\S+)[= ]\d+(?:, ip=[\d.]+)?\)\s?",
        r"(?P<rank>\d{1,4}): (?=\S)",
        r"(?P<rank>\d{1,4}):(?=\s{1,8}(?:File|Traceback|\w*Error))\s?",
        r"\[(?P<rank>\d{1,4})\]:\s?",
        r"(?:worker|node|host|gpu|cn|dgx)[\w.-]{0,60}?\d+: (?=\S)",
        r"(?:Rank|RANK|rank) ?(?P<rank>\d+) ?[:|\]]\s?",
        r"\d+(?:\.\d+)?[sm]? ?\| (?=\S)",
        r"(?:#|>) ?(?=\s*(?:File \"|Traceback|[\w.]*(?:Error|Exception)\b))",
        r"\|\s{1,3}(?=\S)",
        r"(?:[│┃|]|ERROR[:|]|stderr[:|]) ?",
        r"\s{0,4}\d{1,4} {1,4}(?=\s*(?:File \"|Traceback|\w+Error: ))",
    )
)
_RELAYED: Final = (" - INFO - ", " - ERROR - ", " - WARNING - ", " - DEBUG - ")
_PLAIN_STARTS: Final = frozenset("abcdefijklmopqstuvxyzABCDFGHIJKLMNOPQSTUVXYZ")
"""No prefix begins with one of these, and most lines do."""
_STAMP: Final = re.compile(
    r"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T _-]?)?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?,?\s?(?:-\s)?"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line, or one state of a progress bar."""

    number: int
    """As an editor counts, from 1."""
    text: str
    """Without escapes and without what a launcher put before it."""
    raw: str
    """Without escapes."""
    source: str
    """Who said it, as far as a prefix tells: a rank, a worker, or empty."""
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Extract:
    """What is worth reading of a log."""

    regions: tuple[tuple[int, bytes], ...]
    """Number of the first line of each, and its bytes."""
    num_lines: int
    num_bytes: int
    is_whole: bool
    """Nothing was left out."""

    def lines(self) -> Iterator[Line]:
        """Return the lines in order."""
        for first, data in self.regions:
            for offset, raw in enumerate(data.split(b"\n")):
                yield from dress_down(first + offset, raw)


def extract(file: BinaryIO, words: Sequence[str] = ()) -> Extract:
    """Return what is worth reading of an open log; memory stays bounded whatever its size.

    Args:
        words: further lower-case words to look for.
    """
    head = _read_head(file, _WHOLE)
    if len(head) < _WHOLE:
        return Extract(((1, head),), _count_lines(head), len(head), True)
    needles = tuple(word.encode() for word in (*SCANNED, *words))
    return _Scan(needles).run(head, file)


class _Scan:
    """One pass over a large log."""

    def __init__(self, needles: tuple[bytes, ...]) -> None:
        self._needles = needles
        self._first: list[tuple[int, bytes]] = []
        self._first_bytes = 0
        self._last: deque[tuple[int, bytes]] = deque()
        self._last_bytes = 0
        self._is_cut = False

    def run(self, head: bytes, file: BinaryIO) -> Extract:
        number, num_bytes, chunk = 1, 0, head
        edge = _EDGE
        while chunk:
            after = file.read(_CHUNK)
            if after:
                cut = chunk.rfind(b"\n") + 1
                if cut == 0:  # one line of megabytes: its middle says nothing
                    cut = len(chunk)
                chunk, rest = chunk[:cut], chunk[cut:]
            else:
                rest = b""
            self._take(number, chunk, edge, is_end=not after)
            edge = 0
            number += chunk.count(b"\n")
            num_bytes += len(chunk)
            chunk = rest + after
        regions = (*self._first, *self._last)
        return Extract(regions, number, num_bytes, is_whole=False)

    def _take(self, number: int, chunk: bytes, edge: int, *, is_end: bool) -> None:
        lowered = chunk.translate(_LOWER)
        spans = [(0, edge)] if edge else []
        if is_end:
            spans.append((max(0, len(chunk) - _EDGE), len(chunk)))
        for needle in self._needles:
            place = lowered.find(needle)
            while place >= 0:
                spans.append((max(0, place - _BEFORE), min(len(chunk), place + _AFTER)))
                place = lowered.find(needle, place + _AFTER - _BEFORE)
        position, line = 0, number
        for start, end in _merged(spans):
            start = chunk.rfind(b"\n", 0, start) + 1
            stop = chunk.find(b"\n", end)
            stop = len(chunk) if stop < 0 else stop
            if stop <= position:
                continue
            start = max(start, position)
            line += chunk.count(b"\n", position, start)
            self._keep(line, chunk[start:stop])
            line += chunk.count(b"\n", start, stop)
            position = stop

    def _keep(self, line: int, data: bytes) -> None:
        if self._first_bytes < _BUDGET:
            self._first.append((line, data))
            self._first_bytes += len(data)
            return
        self._last.append((line, data))
        self._last_bytes += len(data)
        while self._last_bytes > _BUDGET and len(self._last) > 1:
            self._last_bytes -= len(self._last.popleft()[1])


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _read_head(file: BinaryIO, size: int) -> bytes:
    """Return the beginning."""
    parts, left = [], size
    while left and (part := file.read(left)):  # a pipe gives what it has
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + (0 if data.endswith(b"\n") or not data else 1)


def decode(raw: bytes) -> str:
    """Return text: UTF-8, or GB 18030 where only that fits."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        try:
            return raw.decode("gb18030")
        except UnicodeDecodeError:
            return raw.decode("utf-8", "replace")


def dress_down(number: int, raw: bytes) -> Iterator[Line]:
    """Return the one line, or each state of the bar, that is on a line of a log."""
    for part in raw.rstrip(b"\r").split(b"\r"):
        if len(part) > 2 * _LINE:
            part = part[:_LINE] + b" ... " + part[-_LINE:]
        shown = decode(part)
        if "\x1b" in shown or "[" in shown:
            shown = _ANSI.sub("", shown)
        shown = _CONTROLS.sub("", shown)
        for piece in _LOST_ENDS.split(shown) if len(shown) > _WIDE else (shown,):
            source, rank, text = strip_prefix(piece)
            yield Line(number, text, piece, source, rank)


def strip_prefix(shown: str) -> tuple[str, int | None, str]:
    """Return who said a line, the rank if that is a number, and the line itself."""
    text, source, rank = shown, "", None
    if shown[:1] in _PLAIN_STARTS and not any(level in shown for level in _RELAYED):
        return source, rank, text
    for _ in range(3):
        for prefix in _PREFIXES:
            found = prefix.match(text)
            if found is None:
                continue
            named = found.groupdict()
            source = source or named.get("rank") or named.get("who") or ""
            if rank is None and named.get("rank"):
                rank = int(named["rank"])
            text = text[found.end() :]
            break
        else:
            stamp = _STAMP.match(text)
            if stamp is None or stamp.end() == 0 or stamp.end() == len(text):
                break
            text = text[stamp.end() :]
    return source, rank, text
