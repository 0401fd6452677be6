"""Logs that never take each other's place, and levels in the guide's own form."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest

from headway.guide import GuideLog, copy_output, with_log
from headway.guide import log as module


def test_two_commands_of_one_second_write_two_logs(tmp_path, monkeypatch):
    monkeypatch.setattr(module.time, "strftime", lambda _: "20261116_043536")
    logs = [GuideLog.of_now(tmp_path / "logs", "train") for _ in range(3)]
    for number, log in enumerate(logs):
        log.write(f"command {number}")
        log.close()
    assert [log.path.name for log in logs] == [
        "train_20261116_043536.log",
        "train_20261116_043536_2.log",
        "train_20261116_043536_3.log",
    ]
    assert [log.path.read_text() for log in logs] == ["command 0\n", "command 1\n", "command 2\n"]
    assert sorted(logs[0].path.parent.iterdir())[-1] == logs[-1].path


def test_every_line_of_a_log_of_levels_has_one_and_the_time(tmp_path):
    log = GuideLog.of_now(tmp_path, "train_dual_gpu", is_levelled=True)
    log.write("two\nlines")
    log.write("over", "SUCCESS")
    log.close()
    lines = log.path.read_text().splitlines()
    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert [bool(re.fullmatch(rf"\[INFO\] {stamp} (two|lines)", line)) for line in lines[:2]] == [True, True]
    assert re.fullmatch(rf"\[SUCCESS\] {stamp} over", lines[2])


def test_ctrl_c_while_the_last_files_are_written_is_told_and_only_a_second_one_ends(tmp_path):
    script = """
import os, signal, sys
from headway.guide.follow import finishing
with finishing(lambda: print("writing", flush=True)):
    os.kill(os.getpid(), signal.SIGINT)
    print("written", flush=True)
    if len(sys.argv) > 1:
        os.kill(os.getpid(), signal.SIGINT)
print("done", flush=True)
"""
    once = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (once.returncode, once.stdout.split()) == (0, ["writing", "written", "done"])
    twice = subprocess.run([sys.executable, "-c", script, "2"], capture_output=True, text=True, check=False)
    assert (twice.returncode, twice.stdout.split(), twice.stderr) == (-signal.SIGINT, ["writing", "written"], "")


def test_ctrl_c_before_the_run_stands_in_the_log(tmp_path):
    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_log({}, GuideLog(tmp_path / "log", is_levelled=True), stop)
    assert (tmp_path / "log").read_text().startswith("[WARN]")


def test_what_a_command_behind_a_guides_prints_is_read_whatever_the_terminal_shows(monkeypatch):
    """On a terminal in GBK the log of a run was full of replacement characters."""
    monkeypatch.setenv("PYTHONIOENCODING", "gbk")
    said = []
    code = copy_output([sys.executable, "-c", "print('训练 ✅'); raise SystemExit(3)"], said.append)
    assert (code, said) == (3, ["训练 ✅"])
