"""Ranks that hang: notice it, ask for their stacks, take one picture of all of them."""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import time
from collections import deque
from pathlib import Path
from typing import Final

from headway.diagnosis import Hang, RankView, judge_hang
from headway.launch.attempt import Attempt
from headway.launch.foreign.watch import LineWatch
from headway.launch.hook import Flight, HookPage, ask_for_flight, ask_for_stacks, read_dump, read_flight
from headway.launch.job import ForeignLine, Job
from headway.process import descendants
from headway.telemetry import PHASES, Beat, RunDir, read_beat

_STEPS: Final = 5
_STARTING_S: Final = 120.0
"""Before the ranks have ever moved together: imports, downloads and tokenising take their time."""
_STACKS_S: Final = 0.5
"""Between asking for stacks and reading them."""
_LOOK_S: Final = 0.5
_ASLEEP_S: Final = 2.0
_IDLE_TIMES: Final = 6
_WORK_TIMES: Final = 60
"""Of the shortest silence: how long a rank outside of collectives may keep the others waiting before anything is ended,
when it does nothing that can be seen, and when it uses processor or disk."""
_WORK_S: Final = 5.0
_WORK: Final = 10
"""What a rank at work uses in that time, at the least: 100 ms of processor or 640 KiB; idle threads use less."""
_WINDOW: Final = 32
_FRAME: Final = re.compile(r'^  File "([^"]+)", line (\d+) in (.+)$', re.MULTILINE)
_LIBRARY: Final = re.compile(r"/(?:site|dist)-packages/|/lib/python3\.\d+/|^<|/headway/launch/hook/")
_WAITS: Final = re.compile(r"/torch/(?:autograd/|nn/parallel/|distributed/|cuda/).* in _?(?:engine_run_)?(\w+)$")
_STACK_BYTES: Final = 1 << 16

Mark = tuple[object, ...]


class HangWatch:
    """Looks twice a second; a silence is reported once."""

    def __init__(self, run: RunDir, job: Job, line: ForeignLine, watch: LineWatch) -> None:
        self._job, self._line, self._watch, self._run = job, line, watch, run
        self._next_look = 0.0
        self._asked_at: float | None = None
        self._told: float | None = None
        self._forget(0)

    def look(self, attempt: Attempt) -> Hang | None:
        """Return a hang when there is a new one."""
        now = time.monotonic()
        if attempt.number != self._number:
            self._forget(attempt.number)
        if now < self._next_look or not attempt.is_whole or attempt.killed_at is not None:
            return None
        self._next_look = now + _LOOK_S
        ranks = self._ranks(attempt)
        self._see(ranks, now)
        quiet_s = self._quiet_s(ranks, now)
        if quiet_s is None:
            self._asked_at = None
            self._effort.clear()
            self._is_at_work.clear()
            return None
        self._see_work(ranks, now)
        return self._take_picture(attempt, ranks, quiet_s, now)

    # --- seeing ---

    def _forget(self, number: int) -> None:
        self._number = number
        self._marks: dict[int, Mark] = {}
        self._moved: dict[int, float] = {}
        self._cpu: dict[int, float] = {}
        self._effort: dict[int, tuple[float, int]] = {}
        self._is_at_work: dict[int, bool] = {}
        self._step = 0
        self._step_at = 0.0
        self._step_s: deque[float] = deque(maxlen=_WINDOW)
        self._told = self._asked_at = None
        self._next_look = 0.0

    def _ranks(self, attempt: Attempt) -> dict[int, int]:
        """Return the pid of every rank that can be seen; 0: it has ended well."""
        if not self._line.makes_ranks:
            return {rank.rank: 0 if rank.has_finished() else rank.pid for rank in attempt.here()}
        pages = {rank: self._watch.page(rank) for rank in self._run.ranks()}
        seen = {
            rank: page.pid for rank, page in pages.items() if page is not None and process_state(page.pid) is not None
        }
        return seen if seen or self._line.mode == "original" else {rank.rank: rank.pid for rank in attempt.here()}

    def _see(self, ranks: dict[int, int], now: float) -> None:
        for rank, pid in ranks.items():
            page = self._watch.page(rank)
            told = self._watch.progress(rank)
            mark = (
                pid,
                (page.steps, page.collectives, page.entered_ns, page.optimizers) if page else None,
                told.step if told else None,
                self._watch.num_lines(rank),
            )
            if mark != self._marks.get(rank):
                self._marks[rank], self._moved[rank] = mark, now
                self._cpu[rank] = processor_s(pid) or 0.0
            step = max(page.steps if page else 0, told.step if told else 0)
            if step > self._step:
                if self._step_at:
                    self._step_s.append((now - self._step_at) / (step - self._step))
                self._step, self._step_at = step, now

    def _see_work(self, ranks: dict[int, int], now: float) -> None:
        """Note which silent ranks use processor or disk; asked for only where something may be ended."""
        if self._job.on_hang == "wait":
            return
        for rank, pid in ranks.items():
            spent = _effort(pid)
            since, before = self._effort.setdefault(rank, (now, spent))
            if now - since >= min(_WORK_S, self._job.hang_s):
                self._is_at_work[rank] = spent - before >= _WORK or process_state(pid) == "D"
                self._effort[rank] = now, spent

    def _quiet_s(self, ranks: dict[int, int], now: float) -> float | None:
        """Return the length of a silence that is worth a picture, or None."""
        living = [rank for rank, pid in ranks.items() if pid]
        if not living:
            return None
        usual_s = statistics.median(self._step_s) if self._step_s else 0.0
        limit_s = max(self._job.hang_s, _STEPS * usual_s)
        moved = max(self._moved[rank] for rank in living)
        stopped = [self._moved[rank] for rank in living if process_state(ranks[rank]) in ("T", "t")]
        if stopped:
            # No benefit of the doubt: the picture, which takes two looks, is to be out when the limit is reached.
            moved, limit_s = min(moved, *stopped), max(limit_s - 2 * _LOOK_S - _STACKS_S, _LOOK_S)
        elif not self._has_begun(ranks):
            limit_s = max(limit_s, _STARTING_S)
        if self._told is not None and moved <= self._told:
            return None
        return now - moved if now - moved > limit_s else None

    def _has_begun(self, ranks: dict[int, int]) -> bool:
        """Say whether the ranks have moved at all: a step, a second collective, or one of them has ended already."""
        pages = [self._watch.page(rank) for rank in ranks]
        collectives = max((page.collectives for page in pages if page is not None), default=0)
        return self._step > 0 or collectives > 1 or 0 in ranks.values()

    # --- the picture ---

    def _take_picture(self, attempt: Attempt, ranks: dict[int, int], quiet_s: float, now: float) -> Hang | None:
        if self._asked_at is None:
            self._asked_at = now
            self._next_look = now + _STACKS_S
            for rank, pid in ranks.items():
                page = self._watch.page(rank)
                if page is not None and pid:
                    ask_for_stacks(page)
                    ask_for_flight(pid)
            return None
        self._asked_at = None
        flights = self._flights(attempt, ranks, now)
        views = [self._view(rank, pid, flights.get(rank), now) for rank, pid in sorted(ranks.items())]
        hang = judge_hang(views, quiet_s)
        if not hang.is_waited_for and (hang.kind in ("rank-busy", "all-wait") or hang.is_at_work):
            # Nobody waits for anybody: one long silent piece of work on every rank.
            self._told = now
            return None
        if not hang.is_certain and self._job.on_hang != "wait":
            # A save, a validation or slow data is not a hang; nothing is ended for it so soon.
            times = _WORK_TIMES if hang.is_at_work else _IDLE_TIMES
            if quiet_s < times * self._job.hang_s:
                return None
        self._told = now
        return hang

    def _flights(self, attempt: Attempt, ranks: dict[int, int], now: float) -> dict[int, Flight]:
        """Return the recorders of all ranks that can answer, or of none: two ways of counting do not compare."""
        since = time.time() - (now - attempt.began)
        able = {rank: pid for rank, pid in ranks.items() if pid and process_state(pid) not in ("T", "t")}
        found = {
            rank: read_flight(self._run.rank(rank), attempt.number, pid) or read_dump(self._run.root, rank, since)
            for rank, pid in able.items()
        }
        known = {rank: flight for rank, flight in found.items() if flight is not None}
        return known if len(known) == len(able) else {}

    def _view(self, rank: int, pid: int, flight: Flight | None, now: float) -> RankView:
        page = self._watch.page(rank)
        told = self._watch.progress(rank)
        beat = read_beat(self._run.heartbeat(rank))
        seconds = now - self._moved.get(rank, now)
        spent = processor_s(pid)
        state = ("0" if not pid else process_state(pid)) or "Z"
        stack = read_stack(self._run, rank) if pid and page is not None and state not in "Tt" else ()
        inside = page.name if page is not None and page.entered_ns else _hidden_wait(stack)
        numel = page.numel if page is not None and page.entered_ns else None
        if flight is not None and inside is not None and flight.pending is not None:
            inside, numel = flight.pending, flight.numel
        return RankView(
            rank=rank,
            state=state,
            step=max(page.steps if page else 0, told.step if told else 0),
            phase=_phase(page, beat.phase if beat is not None else None),
            collectives=flight.enqueued if flight else page.collectives if page else None,
            collective=inside if pid else None,
            numel=numel,
            seconds=seconds,
            cpu_share=None if spent is None or seconds <= 0 else (spent - self._cpu.get(rank, spent)) / seconds,
            place=own_place(stack),
            stack=stack,
            pid=pid or None,
            is_at_work=self._is_at_work.get(rank, False),
        )


class StoppedWatch:
    """Ranks of our own engine that a signal has stopped: reported as soon as those of a foreign line, once each."""

    def __init__(self, job: Job) -> None:
        self._limit_s = max(job.hang_s - 2 * _LOOK_S - _STACKS_S, _LOOK_S)
        self._next_look = self._looked = 0.0
        self._since: dict[int, float] = {}
        self._told: set[int] = set()

    def look(self, attempt: Attempt, beats: list[Beat | None]) -> Hang | None:
        """Return a hang when there is a new one."""
        now = time.monotonic()
        if now < self._next_look or not attempt.is_whole or attempt.killed_at is not None:
            return None
        if now - self._looked > _ASLEEP_S:  # a batch system pauses us and the ranks, and wakes us first
            self._since = {}
        self._looked, self._next_look = now, now + _LOOK_S
        here = attempt.here()
        states = {rank.pid: "0" if rank.status is not None else process_state(rank.pid) or "Z" for rank in here}
        stopped = {pid for pid, state in states.items() if state in ("T", "t")}
        self._since = {pid: self._since.get(pid, now) for pid in stopped}
        self._told &= stopped
        due = {pid for pid, since in self._since.items() if now - since >= self._limit_s} - self._told
        if not due:
            return None
        self._told |= stopped
        views = [
            RankView(
                rank=rank.rank,
                state=states[rank.pid],
                step=beat.step if beat is not None else 0,
                phase=beat.phase if beat is not None else "unknown",
                seconds=now - self._since[rank.pid] if rank.pid in stopped else 0.0,
                pid=rank.pid,
            )
            for rank, beat in zip(attempt.ranks, beats, strict=True)
            if rank in here
        ]
        return judge_hang(views, max(now - self._since[pid] for pid in due))


def _phase(page: HookPage | None, written: str | None) -> str:
    if page is None or written is None:
        return "unknown"
    return "collective" if page.entered_ns else written if written in PHASES else "unknown"


def read_stack(run: RunDir, rank: int) -> tuple[str, ...]:
    """Return the main thread's frames, innermost first, as `file:line in function`."""
    path = run.rank(rank) / "stacks"
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _STACK_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    current = text[text.rfind("Current thread") :] if "Current thread" in text else ""
    return tuple(f"{name}:{line} in {function}" for name, line, function in _FRAME.findall(current)[:40])


def _hidden_wait(stack: tuple[str, ...]) -> str | None:
    """Return where torch waits for other ranks in C++, which no wrapper sees: DDP within backward, a synchronize."""
    found = _WAITS.search(stack[0]) if stack else None
    return found[1] if found else None


def own_place(stack: tuple[str, ...]) -> str | None:
    """Return the innermost frame of the user's own code, with the file's name alone."""
    own = next((frame for frame in stack if not _LIBRARY.search(frame)), stack[0] if stack else None)
    return None if own is None else f"{Path(own.rpartition(':')[0]).name}:{own.rpartition(':')[2]}"


def _effort(pid: int) -> int:
    """Return what a process and those below it have used, in 10 ms of processor and 64 KiB of reading and writing."""
    total = 0
    for one in [pid, *descendants(pid)] if pid else ():
        total += round((processor_s(one) or 0.0) * 100)
        with contextlib.suppress(OSError):  # gone, or another user's
            lines = Path(f"/proc/{one}/io").read_text(encoding="ascii").splitlines()
            total += sum(int(line.partition(":")[2]) for line in lines if line.startswith(("rchar", "wchar"))) >> 16
    return total


def process_state(pid: int) -> str | None:
    """Return the kernel's letter for what a process does; None: there is none."""
    fields = _stat(pid)
    return fields[0] if fields else None


def processor_s(pid: int) -> float | None:
    """Return the processor time a process has used; None: there is none."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else None


def _stat(pid: int) -> list[str] | None:
    if pid <= 0:
        return None
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
