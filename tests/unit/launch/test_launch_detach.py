"""A supervisor in the background: its end as a shell tells it, and its independence of a run around it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from headway.launch.hook import HOOK_SITE
from headway.process import TAG_NAME, descendants, kill_all, tagged
from headway.start.detach import detach
from headway.telemetry import RunDir

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.mark.parametrize(("code", "exit_code"), [("os.kill(os.getpid(), 9)", 137), ("sys.exit(7)", 7)])
def test_a_killed_supervisor_ends_as_a_shell_would_say(tmp_path, code: str, exit_code: int) -> None:
    found = detach(RunDir(tmp_path), [sys.executable, "-c", f"import os, sys; {code}"], wait_s=60)
    assert (found.state, found.exit_code) == ("ended", exit_code)


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
