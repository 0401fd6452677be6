"""A few of the random lives of `bench/run_lives.py`, where there are hundreds."""

from __future__ import annotations

import subprocess
import sys
from json import loads
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "run_lives.py"


@pytest.mark.timeout(900)
def test_random_lives_of_a_run_end_as_they_must():
    # A process of its own: ranks are forked from it, and a test's process has threads.
    # The last three: a validation and lines of metrics that a later attempt never came to again; one rank that shards.
    lives = [*map(str, range(700_000, 700_006)), "7703100053", "7703100066", "4100105"]
    line = [sys.executable, str(BENCH), "--real", "0", "--only", *lives]
    done = subprocess.run(line, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = loads(done.stdout.splitlines()[-1])
    assert (found["lives"], found["wrong"]) == (9, 0)
    assert found["events"] >= 12
