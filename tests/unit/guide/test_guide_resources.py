"""What is checked before the start, and what the monitor shows on a machine without a GPU."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from headway.guide import GuideLog, check_devices, check_port, check_variables
from headway.guide.monitor import machine_lines
from headway.recipes.nanochat.guide import VARIABLES
from headway.telemetry import RunDir


def lines_of(tmp_path, check):
    log = GuideLog(tmp_path / "log", is_levelled=True)
    check(log)
    log.close()
    return (tmp_path / "log").read_text().splitlines()


def test_a_busy_port_is_said_with_the_next_free_one(tmp_path, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setenv("MASTER_PORT", str(port))
        (line,) = lines_of(tmp_path, check_port)
    assert line.startswith("[WARN]") and str(port) in line and "next free one" in line


def test_variables_that_the_guide_sets_otherwise_are_remarked_on(tmp_path, monkeypatch):
    monkeypatch.setenv("USE_LIBUV", "1")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "0")
    (line,) = lines_of(tmp_path, lambda log: check_variables(log, VARIABLES))
    assert line.startswith("[WARN]") and "USE_LIBUV=1" in line and "export USE_LIBUV=0" in line


def test_too_few_visible_gpus_are_said_and_a_machine_without_any_too(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    said = "\n".join(lines_of(tmp_path, lambda log: check_devices(log, want=2, want_bytes=20 * 10**9)))
    assert "CUDA_VISIBLE_DEVICES=0,1" in said and said.count("[WARN]") >= 1


def test_the_monitor_shows_what_job_and_machine_take_without_a_gpu(tmp_path):
    run = RunDir(tmp_path / "run")
    run.root.mkdir()
    run.lease.write_text(json.dumps({"pid": os.getpid()}))
    said = "\n".join(machine_lines(run, {}))
    for wanted in ("CPU", "memory", "free disk", "this run: ", str(run.root)):
        assert wanted in said


def test_the_first_look_of_the_monitor_shows_what_the_job_takes(tmp_path):
    run = RunDir(tmp_path / "run")
    run.root.mkdir()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        try:
            run.lease.write_text(json.dumps({"pid": child.pid}))
            (line,) = [line for line in machine_lines(run, {}) if line.startswith("this run: ")]
        finally:
            child.kill()
    assert "CPU 0%" not in line
