"""Ranks of our own engine that hang: noticed by their heartbeats, named by their stacks, all of which are kept.

A rank waits for the others in the sums of a step, so one that hangs stops all. Nothing is looked into while any rank
moves, while the first steps compile, or while one validates, saves or waits for data: these take as long as they take,
and a long silence of all is warned of (`StallWatch`). What is looked into is judged by the stacks: those that are in
the sums wait, and the one that does not is at fault. One that computes gets more time than one that does nothing.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from headway.diagnosis import Hang, RankView, judge_hang
from headway.launch.attempt import Attempt
from headway.launch.foreign.hangs import own_place, process_state, processor_s, read_stack
from headway.launch.hook import ask_process_for_stacks
from headway.process import descendants
from headway.telemetry import Beat, RunDir

_LEAST_S: Final = 3.0
_STEPS: Final = 5
_KNOWN_STEPS: Final = 3
"""Steps of an attempt after which its pace is known."""
_STACKS_S: Final = 0.3
_LOOK_S: Final = 0.25
_WINDOW: Final = 32
_BUSY: Final = 0.1
"""Of a core."""
_PATIENCE: Final = {"rank-busy": 20, "all-wait": 6, "disk-wait": 6, "data-stall": 20}
"""How many times the limit is waited where a rank computes (it may compile), reads, or none is odd."""
_STEP_PHASES: Final = ("forward", "backward", "optimizer")
_WAITS: Final = ("/engine/sums.py:", "/engine/parallel.py:", "/torch/distributed/", "/mindspore/ranks.py:")


class OwnHangWatch:
    """Looks four times per second, and at every call until the pace is known; a silence is reported once."""

    def __init__(self, run: RunDir, hang_s: float) -> None:
        self._run, self._least_s = run, min(_LEAST_S, hang_s)
        self._number = 0
        self._next_look = 0.0
        self._step_s: deque[float] = deque(maxlen=_WINDOW)
        self._steps = 0
        """Taken while it looked."""
        self._last: tuple[int, int] = (0, 0)
        self._cpu: dict[int, tuple[float, float]] = {}
        self._asked_at: float | None = None
        self._told_ns = 0
        self._looked = 0.0
        self._asleep = (0, 0.0)

    def look(self, attempt: Attempt, beats: list[Beat | None]) -> Hang | None:
        """Return a hang when there is a new one."""
        now = time.monotonic()
        if now < self._next_look or not attempt.is_whole or attempt.killed_at is not None:
            return None
        if attempt.number != self._number:
            self._begin(attempt.number)
        # A supervisor that was stopped or starved itself has seen nothing; its own silence is nobody's hang.
        gap_s, self._looked = now - self._looked, now
        is_awake = gap_s < 4 * _LOOK_S
        # Quick steps between two looks are many: a rank may hang before the third look that sees a new one.
        self._next_look = now + _LOOK_S if self._limit_s() is not None else now
        living = {rank.rank: rank.pid for rank in attempt.ranks if rank.status is None and rank.seen_t is None}
        known = {beat_rank: beat for beat_rank, beat in enumerate(beats) if beat is not None and beat_rank in living}
        if len(known) < len(attempt.ranks):
            self._asked_at = None
            return None
        moved_ns = self._see(known)
        quiet_s = self._quiet_s(moved_ns, 0.0 if is_awake else gap_s)
        if not is_awake:
            self._asked_at = None
            return None
        limit_s = self._limit_s()
        # Those that a signal has stopped are reported sooner, by `StoppedWatch`.
        is_stopped = any((process_state(pid) or "Z") in "Tt" for pid in living.values()) if quiet_s > _LOOK_S else False
        in_step = not is_stopped and all(beat.phase in _STEP_PHASES for beat in known.values())
        if limit_s is None or not in_step or moved_ns <= self._told_ns or quiet_s < limit_s:
            self._asked_at = None
            if quiet_s > self._least_s / 2:  # only a silence is worth the price of looking
                self._cpu = {rank: (now, _spent_s(pid)) for rank, pid in living.items()}
            return None
        return self._judge(living, known, quiet_s, limit_s, now)

    def _begin(self, number: int) -> None:
        self._number, self._last, self._asked_at, self._steps = number, (0, 0), None, 0
        self._step_s.clear()
        self._cpu.clear()

    def _see(self, beats: Mapping[int, Beat]) -> int:
        """Take in the pace; return when any rank last moved, on the monotonic clock."""
        step, moved = max(beat.step for beat in beats.values()), max(beat.monotonic_ns for beat in beats.values())
        before_step, before_moved = self._last
        if step != before_step:
            if before_moved and step > before_step:
                self._step_s.append((moved - before_moved) / 1e9 / (step - before_step))
                self._steps += step - before_step
            self._last = step, moved
        return moved

    def _quiet_s(self, moved_ns: int, asleep_s: float) -> float:
        """Return the length of a silence, without the time in which the supervisor (and who knows who else) slept."""
        before_ns, slept_s = self._asleep
        self._asleep = moved_ns, asleep_s + (slept_s if moved_ns == before_ns else 0.0)
        return max(0.0, (time.monotonic_ns() - moved_ns) / 1e9 - self._asleep[1])

    def _limit_s(self) -> float | None:
        """Return the length of a silence that is looked into; None: the pace is not known yet."""
        if self._steps < _KNOWN_STEPS:
            return None
        return max(self._least_s, _STEPS * statistics.median(self._step_s))

    def _judge(
        self, living: Mapping[int, int], beats: Mapping[int, Beat], quiet_s: float, limit_s: float, now: float
    ) -> Hang | None:
        if self._asked_at is None:
            self._asked_at, self._next_look = now, now + _STACKS_S
            for pid in living.values():
                ask_process_for_stacks(pid)
            return None
        self._asked_at = None
        views = [self._view(rank, pid, beats[rank], quiet_s, now) for rank, pid in sorted(living.items())]
        hang = judge_hang(views, quiet_s)
        # Where nobody waits for anybody, all do a long piece of work.
        if not hang.is_waited_for or quiet_s < _PATIENCE.get(hang.kind, 1) * limit_s:
            return None
        self._told_ns = time.monotonic_ns()
        return hang

    def _view(self, rank: int, pid: int, beat: Beat, quiet_s: float, now: float) -> RankView:
        state = process_state(pid) or "Z"
        stack = read_stack(self._run, rank)
        since, spent = self._cpu.get(rank, (now, 0.0))
        share = (_spent_s(pid) - spent) / (now - since) if now > since else None
        if any(process_state(one) == "R" for one in descendants(pid)):
            share = max(1.0, share or 0.0)  # on a crowded machine it gets almost nothing of what it wants
        is_waiting = bool(stack) and any(part in stack[0] for part in _WAITS)
        view = RankView(
            rank=rank,
            state=state,
            step=beat.step,
            phase=beat.phase,
            collective="sum" if is_waiting else None,
            seconds=quiet_s,
            cpu_share=share,
            place=own_place(stack),
            stack=stack,
            pid=pid,
            is_at_work=share is not None and share > _BUSY,
        )
        # Waiting in the sums may spin; only of the odd one the processor time means anything.
        return replace(view, cpu_share=None) if is_waiting else view


def _spent_s(pid: int) -> float:
    """Return the processor time of a rank and of what it has started: a compiler works in processes of its own."""
    return sum(processor_s(one) or 0.0 for one in (pid, *descendants(pid)))
