"""Stopping: politely, at once, by a scheduler, by a closed terminal; and what is left when the supervisor is killed."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from fakes.launches import environment, fault, finish, launched, make_run, marked, wait_until
from headway.cli import main
from headway.errors import UsageError
from headway.launch import find_holder, request_stop
from headway.start.detach import Detached, detach
from headway.telemetry import RunDir, read_events, run_state


def detached(run: RunDir, entry: str = "fakes.fake_worker:main") -> Detached:
    """Supervise with ranks of our own in the background."""
    return detach(run, [sys.executable, "-m", "fakes.launch_driver", str(run.root), entry])


def saved_step(run):
    return int((run.checkpoints / "latest-step").read_text())


def test_ctrl_c_once_saves_and_stops(tmp_path):
    with launched(make_run(tmp_path, steps=5000, step_s=0.01)) as launch:
        launch.wait_line("step 5")
        launch.signal(signal.SIGINT)
        assert launch.wait() == 130
        launch.wait_clean()
    end = launch.events("run_ended")[0]
    assert (end["state"], end["why"], end["steps"]) == ("interrupted", "launch/interrupted", saved_step(launch.run))
    assert launch.events("stop_requested")[0]["why"] == "SIGINT"
    assert launch.events("incident") == []


def test_ctrl_c_pressed_once_and_passed_on_by_a_wrapper_still_saves(tmp_path):
    with launched(make_run(tmp_path, steps=5000, step_s=0.01, save_s=0.5)) as launch:
        launch.wait_line("step 5")
        launch.signal(signal.SIGINT)
        time.sleep(0.02)
        launch.signal(signal.SIGINT)
        assert launch.wait() == 130
    assert launch.events("run_ended")[0]["why"] == "launch/interrupted"


def test_ctrl_c_twice_stops_now_and_keeps_the_older_checkpoint(tmp_path):
    with launched(make_run(tmp_path, steps=5000, step_s=0.01, save_every=10, on_term="ignore")) as launch:
        launch.wait_event("checkpoint_committed")
        launch.signal(signal.SIGINT)
        launch.wait_line("not listening")
        time.sleep(0.3)
        launch.signal(signal.SIGINT)
        assert launch.wait() == 130
        launch.wait_clean()
    assert launch.events("run_ended")[0]["why"] == "launch/stopped-now"
    assert saved_step(launch.run) % 10 == 0


def test_sigterm_saves_within_its_grace(tmp_path):
    with launched(make_run(tmp_path, steps=5000, step_s=0.01, save_s=0.3)) as launch:
        launch.wait_line("step 5")
        launch.signal(signal.SIGTERM)
        time.sleep(0.1)
        launch.signal(signal.SIGTERM)
        assert launch.wait() == 143
    assert launch.events("run_ended")[0]["steps"] == saved_step(launch.run)


def test_ranks_that_ignore_the_request_are_killed_after_the_grace(tmp_path):
    with launched(make_run(tmp_path, steps=5000, step_s=0.01, grace_s=0.3, on_term="ignore")) as launch:
        launch.wait_line("step 5")
        launch.signal(signal.SIGTERM)
        assert launch.wait() == 143
        launch.wait_clean()
    assert launch.events("run_ended")[0]["why"] == "launch/unsaved"
    assert "within 0.3 s" in launch.err


def test_a_save_that_fails_while_stopping_is_a_failure(tmp_path):
    run = make_run(tmp_path, steps=5000, step_s=0.01)
    (run.checkpoints / "latest-step.tmp").mkdir()
    with launched(run) as launch:
        launch.wait_line("step 5")
        launch.signal(signal.SIGINT)
        assert launch.wait() == 5
    assert "IsADirectoryError" in launch.err.splitlines()[-1]


def test_ctrl_c_while_importing_ends_at_once(tmp_path):
    run = make_run(tmp_path, steps=5)
    with launched(run, "fakes.fake_worker:main", "fakes.slow_import") as launch:
        wait_until(lambda: find_holder(run), "the lease")
        time.sleep(0.2)
        launch.signal(signal.SIGINT)
        assert launch.wait() == 130
        launch.wait_clean()
    assert launch.events("run_ended")[0]["why"] == "launch/interrupted-early"


def test_a_rank_that_stops_by_itself_leaves_a_run_to_resume(tmp_path):
    with launched(make_run(tmp_path, steps=5000, step_s=0.01)) as launch:
        launch.wait_line("step 5")
        for pid in launch.events("attempt_started")[0]["pids"]:
            os.kill(pid, signal.SIGTERM)
        assert launch.wait() == 6
    assert launch.events("run_ended")[0]["state"] == "stopped"


def test_a_stopped_run_goes_on_where_it_was_with_the_next_attempt_number(tmp_path):
    run = make_run(tmp_path, steps=200, step_s=0.01)
    with launched(run) as launch:
        launch.wait_line("step 5")
        launch.signal(signal.SIGINT)
        launch.wait()
    step = saved_step(run)
    again = finish(run)
    assert again.process.returncode == 0
    assert [event["attempt"] for event in again.events("attempt_started")] == [1, 2]
    assert again.events("training_started")[-1]["step"] == step


@pytest.mark.parametrize("tries", range(3))
def test_nothing_is_left_after_the_supervisor_is_killed(tmp_path, tries):
    faults = [fault("start_children", rank=rank, step=2) for rank in (0, 1)]
    run = make_run(tmp_path, steps=5000, step_s=0.01, faults=faults, on_term="ignore")
    with launched(run) as launch:
        launch.wait_line("step 5")
        wait_until(lambda: len(launch.left_over()) >= 8, "supervisor, nursery, ranks, workers and daemons")
        launch.signal(signal.SIGKILL)
        launch.wait_clean()
    assert run.lease.exists()  # the proof that it did not end by itself
    assert finish(run_without_faults(run)).process.returncode == 0
    assert not run.lease.exists()
    taken = [event for event in read_events(run.events) if event.get("code") == "launch/lease-taken-over"]
    assert len(taken) == 1


def run_without_faults(run):
    job = json.loads(run.job.read_text())
    job["config"]["fake"] = {"steps": 5}
    run.job.write_text(json.dumps(job))
    return run


def test_nothing_is_left_when_the_supervisor_is_killed_while_importing(tmp_path):
    run = make_run(tmp_path, steps=5)
    with launched(run, "fakes.fake_worker:main", "fakes.slow_import") as launch:
        wait_until(lambda: len(launch.left_over()) >= 2, "the nursery")
        launch.signal(signal.SIGKILL)
        launch.wait_clean()


def test_an_ended_run_leaves_no_daemon_no_lease_and_no_temporary_file(tmp_path):
    run = make_run(tmp_path, steps=30, step_s=0.02, faults=[fault("start_children", rank=1, step=2)])
    launch = finish(run)
    assert launch.process.returncode == 0
    # A run this short may be over before its devices were read once.
    assert {path.name for path in run.root.iterdir()} - {"devices.jsonl"} == {
        "checkpoints", "daemon-1.pid", "events.jsonl", "job.json", "log", "ranks", "worker-1.pid"
    }  # fmt: skip


def test_a_closed_terminal_does_not_end_the_run(tmp_path):
    run = make_run(tmp_path, steps=100, step_s=0.02)
    ours, theirs = pty.openpty()
    popen = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "start_new_session": True}
    with launched(run, **popen, preexec_fn=_take_terminal) as launch:
        os.close(theirs)
        launch.wait_line("step 5")
        os.close(ours)  # the kernel sends SIGHUP to the session
        launch.wait_event("warning")
        assert launch.process.wait(60) == 0
    assert launch.events("warning")[0]["code"] == "launch/terminal-closed"
    assert launch.events("run_ended")[0]["state"] == "done"
    assert "run_ended" in (run.root / "supervisor.log").read_text()


def _take_terminal():
    import fcntl
    import termios

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever the tests themselves were started with
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize("is_ignored", [True, False])
def test_sighup_does_not_end_a_run_without_a_terminal(tmp_path, is_ignored):
    run = make_run(tmp_path, steps=60, step_s=0.02)
    nohup = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)} if is_ignored else {}
    with launched(run, stdin=subprocess.DEVNULL, **nohup) as launch:
        launch.wait_line("step 5")
        launch.signal(signal.SIGHUP)
        assert launch.wait() == 0


def test_a_detached_run_outlives_its_starter_and_stops_on_request(tmp_path, monkeypatch):
    run = make_run(tmp_path, steps=5000, step_s=0.01)
    mark = f"detached-{tmp_path}"
    for name, value in environment(mark).items():
        monkeypatch.setenv(name, value)
    code = f"""
import sys; from pathlib import Path
from headway.start.detach import detach; from headway.telemetry import RunDir
print(detach(RunDir(Path({str(run.root)!r})), [sys.executable, "-m", "fakes.launch_driver", {str(run.root)!r}]).state)
"""
    starter = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert starter.stdout == "training\n"
    holder = find_holder(run)
    assert os.getsid(holder["pid"]) == holder["pid"]
    os.kill(holder["pid"], signal.SIGHUP)
    assert request_stop(run) == holder["pid"]
    wait_until(lambda: not marked(mark), "the end of the detached run")
    end = read_events(run.events)[-1]
    assert (end["kind"], end["exit_code"], end["steps"]) == ("run_ended", 130, saved_step(run))


def test_detach_tells_when_the_run_failed_to_start(tmp_path, monkeypatch):
    run = make_run(tmp_path, steps=5, faults=[fault("fail", step=1)])
    for name, value in environment("failed-start").items():
        monkeypatch.setenv(name, value)
    run.job.write_text(run.job.read_text().replace('"world_size": 2', '"world_size": 1'))
    started = detached(run, "fakes.no_such_worker:main")
    assert (started.state, started.exit_code) == ("ended", 5)
    assert "no_such_worker" in (run.root / "supervisor.log").read_text()


def test_a_detached_run_stops_now_on_request(tmp_path, monkeypatch):
    run = make_run(tmp_path, steps=5000, step_s=0.01, on_term="ignore")
    mark = f"now-{tmp_path}"
    for name, value in environment(mark).items():
        monkeypatch.setenv(name, value)
    started = detached(run)
    request_stop(run, now=True)
    assert os.waitstatus_to_exitcode(os.waitpid(started.pid, 0)[1]) == 130
    wait_until(lambda: not marked(mark), "the end of the run")


def test_a_stop_is_refused_when_nobody_supervises(tmp_path):
    with pytest.raises(UsageError) as refused:
        request_stop(make_run(tmp_path))
    assert refused.value.code == "launch/not-running"


def test_a_stop_before_anybody_has_taken_a_run_that_starts_is_heard(tmp_path, monkeypatch):
    run = make_run(tmp_path, steps=5000, step_s=0.01)
    mark = f"early-{tmp_path}"
    for name, value in environment(mark).items():
        monkeypatch.setenv(name, value)
    assert find_holder(run) is None and run_state(run).state == "running"
    started = []
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: (time.sleep(0.5), started.append(detached(run))))
        with pytest.raises(SystemExit) as ended:
            main(["stop", run.name, "--runs", str(run.root.parent), "--wait", "60"])
    assert ended.value.code in (0, None)
    assert run_state(run).state == "interrupted"
    wait_until(lambda: not marked(mark), "the end of the run")


def test_a_second_supervisor_is_refused_with_pid_and_host(tmp_path):
    run = make_run(tmp_path, steps=5000, step_s=0.01)
    with launched(run) as first:
        first.wait_line("step 5")
        second = finish(run)
        assert second.process.returncode == 2
        assert f"process {first.process.pid} on {os.uname().nodename}" in second.err
        assert find_holder(run)["pid"] == first.process.pid
        first.signal(signal.SIGINT)
        assert first.wait() == 130


def test_ranks_run_in_sessions_of_their_own_with_the_names_frameworks_read(tmp_path):
    run = make_run(tmp_path, steps=5000, step_s=0.01)
    with launched(run) as launch:
        launch.wait_line("step 5")
        pids = launch.events("attempt_started")[0]["pids"]
        assert [os.getsid(pid) for pid in pids] == pids
        assert len({os.getsid(pid) for pid in [*pids, launch.process.pid]}) == 3
        launch.signal(signal.SIGINT)
        launch.wait()
