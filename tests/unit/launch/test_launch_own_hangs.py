"""Ranks of our own engine that hang: which silence is a hang, and which only looks like one."""

from __future__ import annotations

import subprocess
import time
from types import SimpleNamespace

import pytest

from headway.launch.own_hangs import OwnHangWatch
from headway.telemetry import Beat

STACKS = {0: ("/x/headway/engine/sums.py:70 in wait",), 1: ("/x/mine/task.py:3 in loss",)}
QUIET_S = 0.3
"""Steps are far shorter than that."""


@pytest.fixture
def watch(monkeypatch):
    """Return what looks at two ranks, the second of which is this command, for so many seconds."""
    living = []
    monkeypatch.setattr("headway.launch.own_hangs.read_stack", lambda run, rank: STACKS[rank])

    def begin(command, steps=range(6)):
        for one in ("exec sleep 60", command):
            living.append(subprocess.Popen(["sh", "-c", one], start_new_session=True))
        ranks = [
            SimpleNamespace(rank=number, pid=one.pid, status=None, seen_t=None) for number, one in enumerate(living)
        ]
        attempt = SimpleNamespace(is_whole=True, killed_at=None, number=1, ranks=ranks)
        made = OwnHangWatch(None, QUIET_S)
        for step in steps:
            made.look(attempt, beats(step))
            time.sleep(0.01)
        last = beats(steps[-1] + 1)

        def look(seconds):
            ends, found = time.monotonic() + seconds, None
            while found is None and time.monotonic() < ends:
                found = made.look(attempt, last)
                time.sleep(0.02)
            return found

        return look

    yield begin
    for one in living:
        for child in (one, *children(one)):
            child.kill()
        one.wait()


def children(process):
    import psutil

    return psutil.Process(process.pid).children(recursive=True)


def beats(step):
    one = {"pid": 1, "attempt": 1, "phase": "forward", "samples": step, "loss": 0.0, "lr": 0.0, "rate": 0.0}
    return [Beat(**one, step=step, monotonic_ns=time.monotonic_ns()) for _ in (0, 1)]


def test_a_rank_that_does_nothing_is_at_fault(watch):
    hang = watch("exec sleep 60")(10)
    assert (hang.kind, hang.rank) == ("rank-behind", 1)


def test_two_looks_at_quick_steps_tell_the_pace(watch):
    assert watch("exec sleep 60", steps=(1, 8))(10).rank == 1


def test_one_step_tells_no_pace(watch):
    assert watch("exec sleep 60", steps=(0,))(1.5) is None


def test_a_rank_whose_compiler_works_for_it_is_not(watch):
    assert watch("sh -c 'while :; do :; done' & wait")(1.5) is None


def test_a_silence_that_the_supervisor_has_slept_through_is_none(watch):
    look = watch("exec sleep 60")
    look(0.1)
    time.sleep(1.5)  # longer than the limit, and than any pause between two looks
    assert look(0.1) is None
    assert look(10).rank == 1
