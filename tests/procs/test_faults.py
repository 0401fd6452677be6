"""Faults that are really raised on this machine are named, and what clears them leaves nothing to name."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headway.diagnosis import diagnose_log, load_rules

LIVES = Path(__file__).resolve().parents[1] / "fakes" / "fault_lives.py"


@pytest.fixture(scope="module")
def lives():
    environ = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    done = subprocess.run([sys.executable, str(LIVES)], stdout=subprocess.PIPE, env=environ, timeout=240, check=False)
    parts = re.split(rb"^=== (\S+) (\S+) (True|False)\n", done.stdout, flags=re.MULTILINE)[1:]
    return {
        (parts[at].decode(), parts[at + 1].decode(), parts[at + 2] == b"True"): parts[at + 3]
        for at in range(0, len(parts), 4)
    }


def test_every_fault_is_named_and_its_cure_is_quiet(lives):
    assert len(lives) >= 60
    wrong = []
    for (category, name, is_cleared), said in lives.items():
        found = diagnose_log(io.BytesIO(said), load_rules()).cause
        told = found.category if found else "healthy"
        if told != ("healthy" if is_cleared else category):
            wrong.append(f"{name} cleared={is_cleared}: {category} was read as {told}: {said[-300:]!r}")
    assert "\n".join(wrong) == ""
