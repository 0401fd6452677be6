"""What is seen of foreign ranks while they run: steps and losses from their lines, phase and steps from the hook."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from typing import Final

from headway.launch.attempt import Attempt
from headway.launch.foreign.printed import Progress, ProgressReader
from headway.launch.foreign.told import Told
from headway.launch.hook import HookPage, parse_page
from headway.telemetry import Beat, MetricsWriter, RunDir, parse_beat

_LINES_A_TICK: Final = 500
"""Lines of one rank looked at between two ticks; of a flood only its beginning."""
_FLUSH_S: Final = 1.0
_PAGE_BYTES: Final = 4096


@dataclass(slots=True)
class _Seen:
    reader: ProgressReader
    lines: int = 0
    budget: int = _LINES_A_TICK
    progress: Progress | None = None
    told_ns: int = 0
    """When the last step was reported, on the monotonic clock."""
    written: int = 0
    metrics: MetricsWriter | None = None
    last_t: float = 0.0


class LineWatch:
    """Answers one question: how far are the ranks?"""

    def __init__(self, run: RunDir, told: Told) -> None:
        self._run, self._told = run, told
        self._number = 0
        self._seen: dict[int, _Seen] = {}
        self._flushed = 0.0
        self._paths: dict[int, str] = {}

    def begin(self, attempt: int) -> None:
        """Forget the attempt before; its metrics are closed."""
        self.close()
        self._told.begin()
        self._number, self._seen = attempt, {}
        # A run whose lines tell no loss has no steps to show; its readers find an empty file rather than none.
        self._run.rank(0).mkdir(parents=True, exist_ok=True)
        self._run.metrics(0).touch()

    def lines(self, rank: int, lines: list[bytes]) -> None:
        """Look for progress in them."""
        seen = self._seen.get(rank)
        if seen is None:
            seen = self._seen[rank] = _Seen(ProgressReader())
        looked_at = lines[: max(0, seen.budget)]
        seen.lines += len(lines)
        seen.budget -= len(looked_at)
        for line in looked_at:
            found = seen.reader.feed(line)
            if found is not None:
                seen.progress, seen.told_ns = found, time.monotonic_ns()
                self._keep(rank, seen, found)
            if rank == 0:
                self._told.line(line, found, seen.progress)

    def beats(self, attempt: Attempt) -> list[Beat | None]:
        """Return where every rank is, from whatever it lets us see."""
        for seen in self._seen.values():
            seen.budget = _LINES_A_TICK
        self._flush()
        return [self._beat(rank.rank, rank.pid) for rank in attempt.ranks]

    def num_lines(self, rank: int) -> int:
        """Return how many lines a rank has printed in this attempt."""
        return self._seen[rank].lines if rank in self._seen else 0

    def page(self, rank: int) -> HookPage | None:
        """Return the hook's page of this attempt."""
        page = parse_page(self._read(rank))
        return page if page is not None and page.attempt == self._number else None

    def _read(self, rank: int) -> bytes:
        """Return a rank's page as it is; with hundreds of ranks this is most of what a supervisor does."""
        path = self._paths.get(rank)
        if path is None:
            path = self._paths[rank] = str(self._run.heartbeat(rank))
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            return b""
        try:
            return os.read(fd, _PAGE_BYTES)
        except OSError:
            return b""
        finally:
            os.close(fd)

    def progress(self, rank: int) -> Progress | None:
        """Return the last progress a rank reported."""
        return self._seen[rank].progress if rank in self._seen else None

    def close(self) -> None:
        """Write the last losses."""
        for seen in self._seen.values():
            if seen.metrics is not None:
                seen.metrics.close()
                seen.metrics = None

    def _beat(self, rank: int, pid: int) -> Beat | None:
        data, seen = self._read(rank), self._seen.get(rank)
        page = parse_page(data)
        page = page if page is not None and page.attempt == self._number else None
        told = seen.progress if seen is not None else None
        if page is None and told is None:
            return None
        beat = parse_beat(data)
        steps = max(page.steps if page else 0, told.step if told else 0)
        moved = max(page.moved_ns if page else 0, seen.told_ns if seen else 0)
        return Beat(
            pid=pid,
            attempt=self._number,
            phase=beat.phase if beat is not None and page is not None else "forward",
            step=steps,
            samples=0,
            monotonic_ns=moved,
            loss=told.loss if told is not None and told.loss is not None else beat.loss if beat else math.nan,
            lr=told.lr if told is not None and told.lr is not None else math.nan,
            rate=0.0,
        )

    def _keep(self, rank: int, seen: _Seen, found: Progress) -> None:
        """Write a loss down once for its step."""
        if found.loss is None or found.step <= seen.written:
            return
        own = parse_beat(self._read(rank))
        if own is not None and not math.isnan(own.loss):  # it tells its steps itself (`headway.log`): one writer
            return
        now = time.time()
        if seen.metrics is None:
            seen.metrics = MetricsWriter(self._run.metrics(rank), self._number)
        took = (now - seen.last_t) / (found.step - seen.written) if seen.last_t else 0.0
        lr = math.nan if found.lr is None else found.lr
        seen.metrics.add(found.step, 0, found.loss, lr, math.nan, now, took)
        seen.written, seen.last_t = found.step, now

    def _flush(self) -> None:
        now = time.monotonic()
        if now - self._flushed < _FLUSH_S:
            return
        self._flushed = now
        for seen in self._seen.values():
            if seen.metrics is not None:
                seen.metrics.flush()
