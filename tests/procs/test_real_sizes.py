"""The smallest rung of bench/real_sizes.py: two ranks save, one process reads every byte back."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from real_sizes import Tally, climb_state


def test_the_smallest_rung_of_the_ladder_holds(tmp_path):
    tally = Tally(picked="")
    about = {"gb": 0.02, "layout": "sharded", "tensors": 30}
    climb_state(tally, tmp_path / "state", "test", about, ranks=2, readers=(1,))
    assert tally.right == 2 and not tally.wrong
