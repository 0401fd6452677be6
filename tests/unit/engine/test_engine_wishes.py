"""A checkpoint that is asked for by a signal."""

from __future__ import annotations

import os
import signal

import pytest

from fakes.engine_run import make_run, reports
from headway.engine.loop import end_step, take_step
from headway.engine.snapshot import wait_for_save


@pytest.fixture(autouse=True)
def _signals():
    names = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
    before = {signum: signal.getsignal(signum) for signum in names}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


@pytest.mark.parametrize("signum", [signal.SIGUSR1, signal.SIGUSR2])
def test_a_signal_saves_once_and_training_continues(tmp_path, signum):
    run = make_run(tmp_path, "train.steps=8", "save.every=100", "eval.every=100")
    run.open_data()
    for step in range(5):
        if step == 2:
            os.kill(os.getpid(), signum)
        before = run.progress.step, run.progress.position
        totals = take_step(run)
        assert not totals.is_stop_wanted
        end_step(run, totals, before)
    wait_for_save(run)
    assert [event["step"] for event in reports(tmp_path, "checkpoint_committed")] == [3]
    assert run.progress.step == 5
