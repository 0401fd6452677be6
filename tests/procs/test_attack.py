"""A short version of bench/attack.py: seeded tries that need no ranks, in forked workers."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from attack import KINDS, campaign
from attack_families import make_field

TRIES = {
    "lines": 16,
    "values": 12,
    "damage": 24,
    "links": 8,
    "names": 6,
    "streams": 10,
    "index": 6,
    "paths": 10,
    "odd": 12,
    "clocks": 4,
    "scripts": 12,
    "pages": 6,
    "records": 10,
    "oddnames": 6,
    "planted": 8,
    "logs": 4,
    "boards": 4,
}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_nothing_breaks_leaks_or_hangs(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HEADWAY_CLAIMS", str(tmp_path / "claims"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with make_field(tmp_path, is_real=False) as field:
        for family, tries in TRIES.items():
            done = campaign(field, 2026, tries, 60.0, family=family)
            assert done["found"]["tried"] > tries // 3, "too slow to try anything"
            assert not any(done["found"][kind] for kind in KINDS), done["examples"][0][1].text(2000)
