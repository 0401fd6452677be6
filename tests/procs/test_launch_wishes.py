"""Our own engine under its supervisor: a checkpoint by signal, a rank that a signal has stopped."""

from __future__ import annotations

import os
import signal
import time

import pytest

from fakes.launches import launched, make_run


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2", "SIGHUP"])
def test_a_signal_asks_one_rank_for_a_checkpoint_and_the_run_continues(tmp_path, name):
    with launched(make_run(tmp_path, steps=5000, step_s=0.01)) as launch:
        launch.wait_line("step 5")
        launch.signal(getattr(signal, name))
        launch.wait_event("checkpoint_committed")
        assert launch.events("save_requested")[0]["why"] == name
        launch.signal(signal.SIGTERM)
        assert launch.wait() == 143
    assert len(launch.events("attempt_started")) == 1


@pytest.mark.parametrize("policy", ["wait", "restart", "stop"])
@pytest.mark.alone
def test_a_rank_that_a_signal_has_stopped_is_named_in_ten_seconds(tmp_path, policy):
    run = make_run(tmp_path, steps=5000, step_s=0.01, save_every=10, on_hang=policy)
    with launched(run) as launch:
        launch.wait_event("checkpoint_committed")
        began = time.monotonic()
        os.kill(launch.events("attempt_started")[0]["pids"][1], signal.SIGSTOP)
        hang = launch.wait_event("hang")
        assert time.monotonic() - began < 20
        assert (hang["rank"], hang["class"], hang["policy"]) == (1, "rank-stopped", policy)
        if policy == "wait":
            os.kill(hang["ranks"][1]["pid"], signal.SIGCONT)
        if policy == "restart":
            launch.wait_event("attempt_started", 2)
        if policy != "stop":
            launch.signal(signal.SIGQUIT)
        assert launch.wait() == (5 if policy == "stop" else 130)
        launch.wait_clean()
    incidents = [(event["class"], event["action"]) for event in launch.events("incident")]
    assert incidents == ([] if policy == "wait" else [("rank-stopped", policy)])
