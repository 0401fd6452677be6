"""Every labelled line of the reference data, as the benchmark judges it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LINES = ROOT.parent / "shared" / "launch-lines" / "lines.jsonl"


def judge():
    spec = importlib.util.spec_from_file_location("launch_lines", ROOT / "bench" / "launch_lines.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.judge


@pytest.mark.shared
def test_at_least_95_percent_of_the_labelled_lines_are_right_in_every_field():
    if not LINES.is_file():
        pytest.skip(f"NOT TESTED: the labelled launch lines are not beside the repository ({LINES.parent})")
    rows = [json.loads(line) for line in LINES.read_text(encoding="utf-8").splitlines()]
    assert len(rows) >= 83
    wrong = {row["id"]: found for row in rows if (found := judge()(row, strict=True))}
    assert len(wrong) <= 0.05 * len(rows), wrong


def test_all_of_our_own_labelled_lines_are_right_in_every_field():
    text = (Path(__file__).parent / "lines.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    assert len(rows) >= 90
    wrong = {row["id"]: found for row in rows if (found := judge()(row, strict=True))}
    assert not wrong


def test_the_judge_sees_a_wrong_field():
    row = {
        "text": "torchrun --nproc_per_node=2 t.py",
        "expected": {"launcher": "torchrun", "nproc_per_node": 3},
        "unresolved": ["X"],
    }
    found = judge()(row, strict=True)
    assert found == ["nproc_per_node: 2, wanted 3", "unresolved: [], wanted ['X']"]
