"""Where `torch.distributed.launch` puts its argument."""

from __future__ import annotations

import pytest

from headway.launch.exec import _first_script


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("python -u train.py --lr 1", 3),
        ("/opt/env/bin/python3.11 -m pkg.train a", 3),
        ("python -W ignore train.py", 4),
        ("./train.sh a b", 1),
        ("prog", 1),
    ],
)
def test_the_rank_stands_behind_the_program_and_before_its_own_arguments(line, place):
    assert _first_script(line.split()) == place
