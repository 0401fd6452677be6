"""A supervisor in the background: its end as a shell tells it, and its independence of a run around it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from headway.cli.finish import finish_behind
from headway.launch import LOG_NAME, Claims
from headway.launch.hook import HOOK_SITE
from headway.process import TAG_NAME, descendants, kill_all, tagged
from headway.start.detach import Detached, Orders, detach
from headway.telemetry import RunDir

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.mark.parametrize(("code", "exit_code"), [("os.kill(os.getpid(), 9)", 137), ("sys.exit(7)", 7)])
def test_a_killed_supervisor_ends_as_a_shell_would_say(tmp_path, code: str, exit_code: int) -> None:
    found = detach(RunDir(tmp_path), [sys.executable, "-c", f"import os, sys; {code}"], wait_s=60)
    assert (found.state, found.exit_code) == ("ended", exit_code)


def test_a_run_that_is_being_stopped_is_not_called_training(tmp_path) -> None:
    lines = "\\n".join(f'{{"kind": "{kind}"}}' for kind in ("training_started", "stop_requested")) + "\\n"
    write = f"import os, sys, time; os.write(os.open({str(RunDir(tmp_path).events)!r}, 65), b'{lines}'); "
    found = detach(RunDir(tmp_path), [sys.executable, "-c", f"{write} time.sleep(1.5); sys.exit(130)"], wait_s=1)
    assert (found.state, found.exit_code) == ("ended", 130)


@pytest.mark.parametrize(
    ("state", "code", "words"),
    [("ended", 0, "has already ended"), ("training", None, "is training"), ("starting", None, "was started")],
)
def test_what_is_told_of_a_run_in_the_background_is_what_it_does(
    tmp_path, monkeypatch, capsys, state, code, words
) -> None:
    (tmp_path / LOG_NAME).write_text("done: 2 of 2 steps\n")
    found = Detached(pid=1, state=state, exit_code=code)
    monkeypatch.setattr("headway.cli.finish.detach_run", lambda *_, **__: found)
    assert finish_behind(RunDir(tmp_path), Claims("x"), Orders()) == 0
    shown = capsys.readouterr()
    assert words in shown.out and ("done: 2 of 2 steps" in shown.err) == (state == "ended")


def test_a_run_in_the_background_is_not_swept_by_the_run_around_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(TAG_NAME, "outer")
    monkeypatch.setenv("HEADWAY_HOOK_RUN", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", f"{HOOK_SITE}{os.pathsep}/mine")
    found = detach(RunDir(tmp_path), SLEEP, wait_s=0.5)
    try:
        assert found.pid not in tagged("outer")
        assert found.pid not in descendants(os.getpid())
        with open(f"/proc/{found.pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
        assert b"PYTHONPATH=/mine" in variables and not any(one.startswith(b"HEADWAY_HOOK") for one in variables)
    finally:
        kill_all([found.pid])
        os.waitpid(found.pid, 0)


def test_a_batch_job_that_a_script_has_submitted_is_not_swept(tmp_path) -> None:
    batch = {"SLURM_JOB_ID": "99", "ENVIRONMENT": "BATCH"}
    with (
        subprocess.Popen(SLEEP, env={**os.environ, TAG_NAME: "t1"}) as own,
        subprocess.Popen(SLEEP, env={**os.environ, TAG_NAME: "t1", **batch}) as job,
    ):
        deadline = time.monotonic() + 30
        while own.pid not in (found := tagged("t1")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert found == [own.pid]
        kill_all([own.pid, job.pid])
