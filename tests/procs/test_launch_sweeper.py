"""Nothing is left when supervisor and nursery are killed in one instant."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

import headway.launch.sweeper as sweeper_module
from headway.launch.sweeper import Sweeper
from headway.process import tagged

JOB = """
import os, subprocess, sys, time
helper = subprocess.Popen(["sleep", "600"], start_new_session=True)
open("helper.new", "w").write(f"{helper.pid} {os.getpid()} {os.getppid()}")
os.rename("helper.new", "helper")
while True:
    print("step 1/9 loss 1.0", flush=True)
    time.sleep(0.05)
"""


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def wait_until(what, limit_s: float = 60.0) -> bool:
    deadline = time.monotonic() + limit_s
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_helpers_in_their_own_sessions_end_when_supervisor_and_nursery_are_killed_at_once(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    command = [sys.executable, "-m", "headway", "run", "--out", "runs", "torchrun", "--nproc_per_node=1", "job.py"]
    env = {**os.environ, "HEADWAY_CLAIMS": str(tmp_path / "claims")}
    supervisor = subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        assert wait_until((tmp_path / "helper").exists)
        helper, rank, nursery = map(int, (tmp_path / "helper").read_text().split())
        for signum in (signal.SIGSTOP, signal.SIGKILL):
            os.kill(supervisor.pid, signum)
            os.kill(nursery, signum)
        assert wait_until(lambda: not is_alive(helper) and not is_alive(rank))
    finally:
        supervisor.kill()
        supervisor.wait()


def test_one_that_is_dismissed_ends_nothing():
    tag = f"test-{os.getpid()}-dismissed"
    bystander = subprocess.Popen(["sleep", "600"], env={**os.environ, "HEADWAY_RUN": tag})
    sweeper = Sweeper(sys.executable, tag)
    sweeper.dismiss()
    try:
        assert tagged(tag) == [bystander.pid]
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("shell", ["/bin/sh", "/nowhere/sh"])
def test_a_pipe_that_closes_without_a_word_ends_everything_with_the_tag(tmp_path, monkeypatch, shell):
    monkeypatch.setattr(sweeper_module, "_command", partial(sweeper_module._command, shell=shell))
    tag = f"test-{os.getpid()}-left"
    claim = tmp_path / "gpu-0"
    claim.write_text(f'{{"pid": {os.getpid()}}}')
    left = subprocess.Popen(["sleep", "600"], env={**os.environ, "HEADWAY_RUN": tag}, start_new_session=True)
    sweeper = Sweeper(sys.executable, tag)
    sweeper.keep("claim", str(claim))
    os.close(sweeper.writing)
    assert sweeper._process.wait(60) == 0
    assert left.wait(60) == -signal.SIGKILL
    assert not claim.exists()
