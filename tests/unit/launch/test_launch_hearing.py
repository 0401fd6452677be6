"""What the supervisor takes in from ranks: ends, reports, events, and how long it listens after a failure."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from headway.launch.hearing import Hearing
from headway.launch.program import Alone, Seat
from headway.telemetry import RunDir


def make_rank(*reports, pid=7):
    told = [list(reports)]
    return SimpleNamespace(
        rank=0,
        pid=pid,
        pidfd=None,
        report_fd=-1,
        output_fd=-1,
        status=None,
        error=None,
        finished=None,
        failed_at=None,
        read_reports=lambda: (told.pop() if told else [], True),
        read_output=lambda: True,
        has_finished=lambda: False,
    )


def make_attempt(*ranks, is_oom=False):
    return SimpleNamespace(
        ranks=list(ranks),
        background=None,
        evidence_until=None,
        by_pid=lambda pid: next((one for one in ranks if one.pid == pid), None),
        saw_oom_kill=lambda: is_oom,
    )


@pytest.fixture
def heard(tmp_path: Path):
    events: list[dict] = []
    program = SimpleNamespace(hear_end=lambda rank, attempt: None, log_bytes=None)
    hearing = Hearing(
        RunDir(tmp_path), program, SimpleNamespace(rank_event=events.append, gap=lambda *_: None), committed=3
    )
    yield hearing, events
    hearing.close()


@pytest.mark.parametrize(
    ("status", "is_stopping", "is_oom", "code", "signum", "is_oom_kill"),
    [
        (1 << 8, False, False, 1, None, False),
        (1 << 8, False, True, 1, None, True),
        (0, False, True, 0, None, False),
        (signal.SIGKILL, False, True, None, 9, True),
        (signal.SIGKILL, True, True, None, 9, True),
        (signal.SIGTERM, True, True, None, 15, False),
        (signal.SIGTERM, False, True, None, 15, True),
    ],
)
def test_how_a_rank_ended_is_read_from_its_wait_status(heard, status, is_stopping, is_oom, code, signum, is_oom_kill):
    rank = make_rank()
    heard[0].hear_exit(make_attempt(rank, is_oom=is_oom), 7, int(status), is_stopping=is_stopping)
    assert (rank.status.code, rank.status.signal, rank.status.is_oom_kill) == (code, signum, is_oom_kill)


def test_the_time_of_a_failure_is_when_its_error_was_heard_and_a_later_death_does_not_move_it(heard):
    rank = make_rank({"kind": "error", "type": "ValueError"}, {"kind": "error", "type": "second"})
    attempt = make_attempt(rank)
    before = time.monotonic()
    heard[0].hear_reports(rank, attempt)
    first = rank.failed_at
    assert before <= first <= time.monotonic() and rank.error["type"] == "ValueError"
    assert attempt.evidence_until == pytest.approx(first + 0.3, abs=0.2)
    heard[0].hear_exit(attempt, 7, 1 << 8, is_stopping=False)
    assert rank.failed_at == first


def test_after_a_signal_from_outside_nobody_is_waited_for(heard):
    rank = make_rank()
    attempt = make_attempt(rank)
    heard[0].hear_exit(attempt, 7, int(signal.SIGKILL), is_stopping=False)
    assert attempt.evidence_until <= time.monotonic()


def test_the_shorter_of_two_waits_for_evidence_counts(heard):
    slow, clear = make_rank({"kind": "error"}), make_rank(pid=8)
    attempt = make_attempt(slow, clear)
    heard[0].hear_reports(slow, attempt)
    heard[0].hear_exit(attempt, 8, int(signal.SIGKILL), is_stopping=False)
    assert attempt.evidence_until <= time.monotonic()


def test_the_end_of_a_process_that_is_no_rank_is_only_the_backgrounds(heard):
    ended = []
    attempt = make_attempt(make_rank())
    attempt.background = SimpleNamespace(hear_end=lambda pid, status: ended.append((pid, status.code)))
    heard[0].hear_exit(attempt, 99, 3 << 8, is_stopping=False)
    assert ended == [(99, 3)] and attempt.ranks[0].status is None


@pytest.mark.parametrize(
    ("event", "committed"),
    [
        ({"kind": "checkpoint_committed", "step": 8}, 8),
        ({"kind": "checkpoint_committed", "step": 2}, 3),
        ({"kind": "checkpoint_committed", "step": "8"}, 3),
        ({"kind": "training_started", "step": 2}, 2),
        ({"kind": "training_started", "step": 0}, None),
        ({"kind": "validation", "step": 9}, 3),
    ],
)
def test_the_newest_checkpoint_is_what_the_ranks_have_committed_or_gone_back_to(heard, event, committed):
    hearing, events = heard
    rank = make_rank({"kind": "event", "event": event})
    hearing.hear_reports(rank, make_attempt(rank))
    assert hearing.committed == committed and events == [event]


@pytest.mark.parametrize("event", [None, 3, {}, {"kind": 5}])
def test_an_event_that_is_none_is_left_out(heard, event):
    rank = make_rank({"kind": "event", "event": event})
    heard[0].hear_reports(rank, make_attempt(rank))
    assert heard[1] == []


def test_what_must_be_heard_first_is_heard_first_and_what_is_forgotten_not_at_all(heard):
    hearing, said = heard[0], []
    pipes = [os.pipe() for _ in range(3)]
    for (read, write), order in zip(pipes, (2, 0, 1), strict=True):
        hearing.listen(read, order, lambda order=order: said.append(order))
        os.write(write, b"x")
    hearing.forget(pipes[2][0])
    hearing.forget(-1)
    hearing.wait(0.0)
    assert said == [0, 2]
    for pair in pipes:
        for fd in pair:
            hearing.forget(fd)
            os.close(fd)


def test_alone_all_seats_are_here_and_the_verdict_is_its_own():
    crew, verdict = Alone(3), object()
    seats = crew.seats(2, 29500)
    assert [(seat.rank, seat.local_rank, seat.world_size) for seat in seats] == [(0, 0, 3), (1, 1, 3), (2, 2, 3)]
    assert seats[2] == Seat(attempt=2, rank=2, local_rank=2, world_size=3, port=29500)
    assert crew.agree(verdict) is verdict
