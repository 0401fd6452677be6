"""What a user's own script prints is shown as a run: its validations, its end, its NaN; and it can continue."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from headway.telemetry import find_run, read_events, run_state

SAVES = """
import json, os, pathlib, signal, sys
start = json.loads(pathlib.Path(sys.argv[2]).read_text())["step"] if "--resume" in sys.argv else 0
print(f"starts at {start}", flush=True)
for step in range(start + 1, 9):
    print(f"step {step}/8 loss {1 / step:.3f}", flush=True)
    pathlib.Path(f"checkpoint-{step}.json").write_text(json.dumps({"step": step}))
    if step == 5 and not start:
        os.kill(os.getpid(), signal.SIGKILL)
print("val loss 0.25", flush=True)
"""
BREAKS = """
import time
for step in range(1, 2000):
    print(f"step {step}: loss {'nan' if step > 3 else 1.0}", flush=True)
    time.sleep(0.01)
"""


@pytest.fixture
def run_line(tmp_path):
    def start(script, *options, args=()):
        (tmp_path / "own.py").write_text(script)
        line = [sys.executable, "-P", "-m", "headway", "run", *options, sys.executable, "own.py", *args]
        kept = {**os.environ, "HEADWAY_CLAIMS": str(tmp_path / "claims")}
        return subprocess.run(line, cwd=tmp_path, env=kept, capture_output=True, text=True, timeout=120, check=False)

    return start


def ask(tmp_path, *words):
    line = [sys.executable, "-P", "-m", "headway", *words]
    return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)


def test_a_killed_script_continues_with_the_words_its_user_gave(tmp_path, run_line):
    done = run_line(SAVES, "--restarts", "1", "--resume-with", "--resume {latest}")
    assert done.returncode == 0, done.stderr
    assert "starts at 5" in done.stdout and "checkpoint-5.json" in done.stderr
    state = run_state(find_run(None, tmp_path / "runs"))
    assert (state.step, state.total_steps, state.best.name, state.best.value) == (8, 8, "val_loss", 0.25)
    (row,) = json.loads(ask(tmp_path, "runs", "--json").stdout)["runs"]
    assert row["total_steps"] == 8 and row["rate_steps_s"] > 0
    assert "8/8" in ask(tmp_path, "runs").stdout


def test_without_words_a_restart_says_that_the_script_has_checkpoints(run_line):
    done = run_line(SAVES, "--restarts", "1")
    assert "checkpoint-5.json" in done.stderr and "--resume-with" in done.stderr


def test_a_loss_that_is_nan_ends_the_run_where_the_user_wants_that(tmp_path, run_line):
    done = run_line(BREAKS, "--on-nan", "stop")
    assert done.returncode == 5 and "NaN" in done.stderr
    run = find_run(None, tmp_path / "runs")
    assert run_state(run).step < 1999
    (incident,) = [event for event in read_events(run.events) if event["kind"] == "incident"]
    assert incident["code"].endswith("nan-loss")


def test_runs_of_one_script_are_compared_by_its_arguments_and_cannot_be_evaluated(tmp_path, run_line):
    script = "import sys\nfor i in range(1, 4): print(f'step {i}: loss {i}', flush=True)"
    run_line(script, args=("--lr", "1e-3", "--fast"))
    run_line(script, args=("--lr", "1e-2"))
    assert "--lr=1e-3" in (told := ask(tmp_path, "compare").stdout) and "--fast=true" in told
    refused = ask(tmp_path, "eval")
    assert refused.returncode == 2 and "cli/no-recipe" in refused.stderr


def test_a_script_alone_is_answered_with_the_line_to_type(tmp_path, run_line):
    (tmp_path / "own.py").write_text("")
    refused = ask(tmp_path, "run", "own.py", "--lr", "1")
    assert refused.returncode == 2 and "run python own.py --lr 1" in refused.stderr
