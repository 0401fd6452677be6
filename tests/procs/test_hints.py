"""Hints can be pasted: a part of `bench/hints.py`, with real commands and their lines typed again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_what_hints_say_to_type_runs_and_cures():
    command = [sys.executable, str(ROOT / "bench" / "hints.py"), "--only", "a.yaml", "--every", "6", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["codes"] >= 5 and found["commands"] >= 2, done.stdout + done.stderr
    assert (found["runnable"], found["lost"]) == (1.0, 0) and found["cured"] >= 0.9, done.stdout
