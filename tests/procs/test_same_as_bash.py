"""A short, seeded part of `bench/same_as_bash.py`: what Headway starts is what bash starts."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import same_as_bash

    yield same_as_bash
    for name in ("same_as_bash", "same_as_bash_lines"):
        sys.modules.pop(name, None)


def test_lines_made_by_chance_start_the_same_under_bash_and_under_headway(bench, tmp_path):
    world, random = bench.World(tmp_path), Random(20)
    verdicts = [(line.text, *bench.judge(world, line, is_real=False)) for line in bench.make_lines(random, 60)]
    assert [one for one in verdicts if one[1] == "different"] == []
    assert sum(one[1] == "same" for one in verdicts) >= 57


@pytest.mark.parametrize(
    ("mode", "text", "words"),
    [
        ("words", "python x.py '<s>' 'It’s' $'a\\r\\n' $'\\xff'", ("python", "x.py", "<s>", "It’s", "a\r\n", "\udcff")),
        ("text", 'D=${GPUS:-0} python x.py "$LR" ~/d g/*.bin $((2*3)) {1..3} ${DEBUG:+--debug} # c', ()),
        ("text", "env -C sub env -u X stdbuf -oL bash ../x.sh a > out.txt 2>&1", ()),
        ("script", "f() { python x.py \"$@\" <<< 'in'; }; f '一 二' | python y.py --exit=3", ()),
    ],
)
def test_the_whole_command_is_bashs_too(bench, tmp_path, mode, text, words):
    line = bench.Line(mode, text, words)
    assert bench.judge(bench.World(tmp_path), line, is_real=True) == ("same", "")
