"""What the supervisor makes of ranks that fail, for real."""

from __future__ import annotations

import os
import signal

import pytest

from fakes.launches import fault, finish, launched, make_run, wait_until


def test_a_run_without_faults_is_done(tmp_path):
    launch = finish(make_run(tmp_path, steps=10))
    assert launch.process.returncode == 0
    end = launch.events("run_ended")[0]
    assert (end["state"], end["exit_code"], end["steps"]) == ("done", 0, 10)
    assert [event["code"] for event in launch.events("rank_exited")] == [0, 0]


def test_a_killed_rank_is_restarted_from_the_last_checkpoint(tmp_path):
    run = make_run(
        tmp_path,
        steps=20,
        save_every=5,
        faults=[fault("signal_itself", signal="SIGKILL", rank=1, step=8, attempts=[1])],
    )
    launch = finish(run)
    assert launch.process.returncode == 0
    first, second = launch.events("attempt_started")
    assert (first["attempt"], second["attempt"], second["resume_step"]) == (1, 2, 5)
    assert first["port"] != second["port"]
    assert second["recover_ms"] > 0
    (incident,) = launch.events("incident")
    assert (incident["rank"], incident["class"], incident["action"], incident["step"]) == (1, "killed", "restart", 7)


def test_the_kernel_kills_rank_0_from_outside_and_the_run_goes_on(tmp_path):
    run = make_run(tmp_path, steps=60, step_s=0.02, save_every=5)
    with launched(run) as launch:
        launch.wait_event("checkpoint_committed", 2)
        os.kill(launch.events("attempt_started")[0]["pids"][0], signal.SIGKILL)
        assert launch.wait() == 0
    assert launch.events("incident")[0]["rank"] == 0
    assert len(launch.events("attempt_started")) == 2


def test_all_ranks_killed_at_once_make_one_incident(tmp_path):
    run = make_run(tmp_path, world_size=4, steps=60, step_s=0.02, save_every=5)
    with launched(run) as launch:
        launch.wait_event("checkpoint_committed", 2)
        for pid in launch.events("attempt_started")[0]["pids"]:
            os.kill(pid, signal.SIGKILL)
        assert launch.wait() == 0
    assert len(launch.events("incident")) == 1


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGBUS", "SIGABRT"])
def test_a_native_crash_is_named_with_the_place_it_happened(tmp_path, name):
    run = make_run(tmp_path, steps=9, faults=[fault("signal_itself", signal=name, rank=1, step=4, attempts=[1])])
    launch = finish(run)
    (incident,) = launch.events("incident")
    assert launch.process.returncode == 0
    assert (incident["class"], incident["facts"]["signal"], incident["action"]) == ("crashed", name, "restart")
    assert "Fatal Python error" in incident["traceback"]
    assert "signal_itself" in incident["traceback"]


def test_an_instruction_refused_in_the_first_step_is_final_and_told_with_its_cure(tmp_path):
    launch = finish(make_run(tmp_path, steps=9, faults=[fault("signal_itself", signal="SIGILL", rank=1, step=1)]))
    assert launch.process.returncode == 93
    assert len(launch.events("attempt_started")) == 1
    (incident,) = launch.events("incident")
    assert (incident["class"], incident["rank"], incident["action"]) == ("illegal-instruction", 1, "stop")
    assert "refused an instruction (SIGILL)" in launch.err.splitlines()[0]
    assert launch.err.splitlines()[2].endswith("headway check --smoke")


def test_an_instruction_refused_after_steps_is_tried_again_until_a_first_step_is_refused_too(tmp_path):
    faults = [
        fault("signal_itself", signal="SIGILL", rank=1, step=8, attempts=[1]),
        fault("signal_itself", signal="SIGILL", rank=1, step=6, attempts=[2]),
    ]
    launch = finish(make_run(tmp_path, steps=9, save_every=5, faults=faults))
    assert launch.process.returncode == 93
    first, second = launch.events("incident")
    assert (first["class"], first["action"]) == ("crashed", "restart")
    assert (second["class"], second["action"]) == ("illegal-instruction", "stop")


def test_a_python_error_is_not_retried_and_its_traceback_is_the_last_thing_on_the_screen(tmp_path):
    launch = finish(make_run(tmp_path, steps=20, save_every=2, faults=[fault("fail", rank=1, step=8)]))
    assert launch.process.returncode == 5
    assert len(launch.events("attempt_started")) == 1
    assert "rank 1 failed after step 7 (exit code 1): ValueError: labels are out of range" in launch.err.splitlines()[0]
    assert launch.err.splitlines()[-1] == "ValueError: labels are out of range"
    assert "nursery.py" not in launch.err


def test_an_echo_of_another_ranks_end_is_never_blamed(tmp_path):
    faults = [fault("lose_peer", rank=0, step=4), fault("lose_peer_then_fail", rank=1, step=4)]
    launch = finish(make_run(tmp_path, steps=9, faults=faults))
    (incident,) = launch.events("incident")
    assert launch.process.returncode == 5
    assert (incident["rank"], incident["others"]) == (1, [0])
    assert launch.err.splitlines()[-1] == "ValueError: the true cause, told late"


def test_a_lost_connection_alone_is_tried_again(tmp_path):
    run = make_run(tmp_path, steps=9, faults=[fault("lose_peer", rank=0, step=4, attempts=[1])])
    launch = finish(run)
    assert launch.process.returncode == 0
    assert launch.events("incident")[0]["class"] == "connection-lost"


def test_a_headway_error_of_a_rank_speaks_for_itself(tmp_path):
    launch = finish(make_run(tmp_path, steps=9, faults=[fault("fail_headway", rank=0, step=4)]))
    assert launch.process.returncode == 5
    assert "ended with exit code 77 and no error message [diagnose/exited]" in launch.err
    assert "Traceback" not in launch.err


def test_one_rank_that_exits_0_early_is_a_failure(tmp_path):
    launch = finish(make_run(tmp_path, steps=100, step_s=0.05, faults=[fault("exit_early", rank=1, step=3)]))
    assert launch.process.returncode == 5
    (incident,) = launch.events("incident")
    assert (incident["rank"], incident["class"]) == (1, "early-exit")


def test_all_ranks_that_exit_0_early_are_a_failure(tmp_path):
    faults = [fault("exit_early", rank=rank, step=3) for rank in (0, 1)]
    launch = finish(make_run(tmp_path, steps=9, faults=faults))
    assert launch.process.returncode == 5
    assert launch.events("run_ended")[0]["state"] == "failed"


def test_an_exit_code_without_a_word_is_kept(tmp_path):
    launch = finish(make_run(tmp_path, steps=9, faults=[fault("exit_early", code=9, step=3)]))
    assert launch.process.returncode == 5
    assert "ended with exit code 9" in launch.err


def test_a_run_that_says_done_without_a_step_is_a_failure(tmp_path):
    launch = finish(make_run(tmp_path, world_size=1, steps=9, faults=[fault("claim_done", step=1)]))
    assert launch.process.returncode == 5
    assert launch.events("incident")[0]["class"] == "no-step"


def test_a_crash_loop_stops_for_good(tmp_path):
    launch = finish(make_run(tmp_path, steps=9, faults=[fault("signal_itself", signal="SIGKILL", rank=1, step=4)]))
    assert launch.process.returncode == 93
    assert len(launch.events("attempt_started")) == 4
    assert "3 restarts in a row did not get past step" in launch.err


def test_restarts_that_make_progress_are_not_counted(tmp_path):
    faults = [fault("signal_itself", signal="SIGKILL", rank=1, step=step, attempts=[step - 1]) for step in range(2, 8)]
    launch = finish(make_run(tmp_path, steps=9, save_every=1, restarts=1, faults=faults))
    assert launch.process.returncode == 0
    assert len(launch.events("attempt_started")) == 7


def test_restarts_0_means_no_restart(tmp_path):
    run = make_run(tmp_path, steps=9, restarts=0, faults=[fault("signal_itself", signal="SIGKILL", step=4)])
    assert finish(run).process.returncode == 5


def test_a_module_that_cannot_be_imported_is_shown_and_not_retried(tmp_path):
    launch = finish(make_run(tmp_path, steps=9), "fakes.fake_worker:main", "no_such_framework")
    assert launch.process.returncode == 5
    assert launch.events("attempt_started") == []
    assert launch.err.splitlines()[-1] == "ModuleNotFoundError: No module named 'no_such_framework'"


def test_a_killed_nursery_is_replaced_and_the_run_goes_on(tmp_path):
    run = make_run(tmp_path, steps=60, step_s=0.02, save_every=5)
    with launched(run) as launch:
        launch.wait_event("checkpoint_committed", 2)
        pid = launch.events("attempt_started")[0]["pids"][0]
        with open(f"/proc/{pid}/stat") as file:
            nursery = int(file.read().rpartition(")")[2].split()[1])
        os.kill(nursery, signal.SIGKILL)
        assert launch.wait() == 0
        launch.wait_clean()
    (incident,) = launch.events("incident")
    assert (incident["rank"], incident["class"], incident["action"]) == (None, "nursery-died", "restart")


def test_reports_that_make_no_sense_change_nothing(tmp_path):
    assert finish(make_run(tmp_path, steps=9, faults=[fault("send_odd_reports", step=3)])).process.returncode == 0


def test_daemons_of_a_dead_attempt_do_not_live_into_the_next(tmp_path):
    faults = [
        fault("start_children", rank=0, step=2, attempts=[1]),
        fault("signal_itself", signal="SIGKILL", rank=0, step=30, attempts=[1]),
    ]
    run = make_run(tmp_path, steps=500, step_s=0.02, faults=faults)
    with launched(run) as launch:
        daemon, worker = (
            wait_until(lambda name=name: _read(run.root / f"{name}-0.pid"), name) for name in ("daemon", "worker")
        )
        launch.wait_event("attempt_started", 2)
        wait_until(lambda: not {daemon, worker} & set(launch.left_over()), "the end of both children")
        launch.signal(signal.SIGTERM)
        assert launch.wait() == 143


def _read(path):
    return int(path.read_text() or 0) if path.exists() else 0


def test_a_nursery_killed_while_it_imports_is_started_again(tmp_path, monkeypatch):
    monkeypatch.setenv("DEADLY_IMPORT", f"SIGKILL:2:{tmp_path / 'count'}")
    launch = finish(make_run(tmp_path, steps=3), "fakes.fake_worker:main", "fakes.deadly_import")
    assert launch.process.returncode == 0, launch.err
    assert [one["class"] for one in launch.events("incident")] == ["nursery-died"] * 2
    assert len(launch.events("attempt_started")) == 1


def test_a_nursery_that_is_killed_every_time_ends_for_good_and_no_package_is_blamed(tmp_path, monkeypatch):
    monkeypatch.setenv("DEADLY_IMPORT", f"SIGKILL:99:{tmp_path / 'count'}")
    launch = finish(make_run(tmp_path, steps=3), "fakes.fake_worker:main", "fakes.deadly_import")
    assert launch.process.returncode == 93
    assert "the process from which the ranks are forked died (SIGKILL) [diagnose/nursery-died]" in launch.err
    assert "pip install" not in launch.err


def test_an_import_whose_instructions_are_refused_is_final(tmp_path, monkeypatch):
    monkeypatch.setenv("DEADLY_IMPORT", f"SIGILL:99:{tmp_path / 'count'}")
    launch = finish(make_run(tmp_path, steps=3), "fakes.fake_worker:main", "fakes.deadly_import")
    assert launch.process.returncode == 93
    assert (tmp_path / "count").stat().st_size == 1
    assert "[diagnose/illegal-instruction]" in launch.err
