"""The clean file is read back as the launch it was written for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.adopt import check, understand, write_clean
from headway.adopt.reread import read_clean

ROWS = [json.loads(line) for line in (Path(__file__).parent / "lines.jsonl").read_text(encoding="utf-8").splitlines()]
_LEFT_OUT = {"env", "wrappers", "master_addr", "master_port"}
"""What has no effect is left out on purpose, and so is an address on one node."""


def test_every_line_comes_back_from_its_clean_file():
    seen = 0
    for row in ROWS:
        launch = understand(row["text"]).launch
        again = understand(write_clean(launch, [])).launch
        one, other = launch.to_json(), again.to_json()
        assert {k: v for k, v in one.items() if k not in _LEFT_OUT} == {
            k: v for k, v in other.items() if k not in _LEFT_OUT
        }
        assert again.unresolved == launch.unresolved
        seen += 1
    assert seen >= 90


def test_a_clean_file_has_no_findings_of_its_own():
    meaning = understand("export A=1\nRANK=0 torchrun --nproc_per_node 2 t.py $X")
    clean = write_clean(meaning.launch, check(meaning))
    assert {one.verdict for one in check(understand(clean))} == {"kept"}


@pytest.mark.parametrize(
    "body",
    [
        "launcher: nobody",
        "args: []",
        'launcher: "torchrun"\nargs: 3',
        'launcher: "torchrun"\nentry: {kind: x}',
        "[",
        "a: &a [*a]",
    ],
)
def test_a_file_that_is_no_launch_is_none(body):
    assert read_clean(f"schema: launch/1\n{body}\n") is None


def test_other_text_is_left_alone():
    assert read_clean("torchrun t.py") is None
