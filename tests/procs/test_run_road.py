"""`headway run` takes the road of `train`: machine, report; in the background nothing is parsed twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from headway.telemetry import find_run, list_runs, read_events, read_metrics, run_state

SCRIPT = """
import os, headway
assert os.environ["API_TOKEN"] == "canary-1234"
for step in range(1, 6):
    headway.log(step=step, loss=1 / step)
    print(f"step {step} loss 9.0")
"""


def test_a_line_in_the_background_logs_its_steps_and_ends_with_a_report(tmp_path):
    (tmp_path / "own.py").write_text(SCRIPT)
    line = [sys.executable, "-P", "-m", "headway", "run", "--detach", f"API_TOKEN=canary-1234 {sys.executable} own.py"]
    kept = {**os.environ, "HEADWAY_CLAIMS": str(tmp_path / "claims")}
    done = subprocess.run(line, cwd=tmp_path, env=kept, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    run = find_run(None, tmp_path / "runs")
    deadline = time.monotonic() + 120
    while not run.report.exists():
        assert time.monotonic() < deadline, (run.root / "supervisor.log").read_text()
        time.sleep(0.1)
    found = read_metrics(run.metrics(0))
    assert list(found["step"]) == [1, 2, 3, 4, 5] and list(found["loss"]) == [1 / step for step in range(1, 6)]
    state = run_state(run)
    assert (state.state, state.step, state.loss) == ("done", 5, 0.2)
    kinds = [event["kind"] for event in read_events(run.events)]
    assert kinds.count("run_started") == 1
    assert "checked" in kinds or run.machine.exists()  # a look that takes too long is written when it comes
    written = [path for path in run.root.rglob("*") if path.is_file()]
    assert not [path for path in written if b"canary-1234" in path.read_bytes()]
    assert json.loads(run.job.read_text())["kind"] == "foreign"


def test_a_run_has_the_name_it_was_given(tmp_path):
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-P", "-m", "headway", "run", "--no-training", *words]
        kept = {**os.environ, "HEADWAY_CLAIMS": str(tmp_path / "claims")}
        return subprocess.run(line, cwd=tmp_path, env=kept, capture_output=True, text=True, timeout=120, check=False)

    assert run("--name", "基线-2", "true").returncode == 0
    assert [one.name.split("_")[1] for one in list_runs(tmp_path / "runs")] == ["基线-2"]
    refused = run("--name", "a/b", "true")
    assert refused.returncode == 2 and "run/not-a-name" in refused.stderr and len(list_runs(tmp_path / "runs")) == 1
