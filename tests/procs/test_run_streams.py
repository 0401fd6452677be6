"""`headway run` where its output is not read (issue 10, item 18): the job's own exit code, and signals are heard."""

import os
import signal
import subprocess
import sys
import time

import pytest

from fakes.launches import ROOT
from fakes.run_command import running
from headway.telemetry import list_runs, read_events

JOB = "import sys\nfor i in range({num}): print('line', i, 'x' * 200, flush=True)\n{rest}\n"


def shell(place, line):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HEADWAY_CLAIMS": str(place / "claims")}
    return subprocess.run(["bash", "-c", line], cwd=place, env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "behind", ["| head -2", "2>&1 | head -1", "| true", ">/dev/full", ">/dev/full 2>&1", ">&- 2>&-"]
)
def test_the_exit_code_is_the_jobs_own(tmp_path, behind):
    (tmp_path / "job.py").write_text(JOB.format(num=3000, rest="sys.exit(7)"))
    command = f"{sys.executable} -m headway run --no-training {sys.executable} job.py"
    done = shell(tmp_path, f"set -o pipefail; ({command}; echo $? >code) {behind}")
    assert (tmp_path / "code").read_text() == "7\n", done.stderr
    (run,) = list_runs(tmp_path / "runs")
    assert read_events(run.events)[-1]["exit_code"] == 7


def test_an_unread_pipe_neither_stops_supervision_nor_signals(tmp_path):
    (tmp_path / "job.py").write_text(
        JOB.format(num=60_000, rest="open('done', 'w').close()\nimport time\ntime.sleep(60)")
    )
    with running(tmp_path, "--no-training", "--grace", "2", sys.executable, "job.py") as ran:
        until = time.monotonic() + 60
        while not (tmp_path / "done").exists():  # 13 MB have passed a pipe of 64 KiB that nobody reads
            assert time.monotonic() < until
            time.sleep(0.1)
        ran.process.send_signal(signal.SIGTERM)
        ran.wait_event("run_ended")
        assert ran.process.wait(30) == 143
