"""Two runs of one machine are told apart by what they tell their ranks."""

from __future__ import annotations

from pathlib import Path

from headway.adopt import read_line
from headway.launch import Claims
from headway.start.decide_line import LineWish, decide_line
from headway.start.write import write_run


def decide(tmp_path: Path, name: str, *words: str) -> str:
    read = read_line(("torchrun", *words, "train.py"), None)
    wish = LineWish(cpus=2, must_train=False, out=tmp_path)
    _, job = write_run(decide_line(read, wish, Claims(name, tmp_path), print))
    assert job.foreign is not None
    return job.foreign.run_id


def test_every_run_has_an_elastic_id_of_its_own_unless_the_line_names_one(tmp_path: Path) -> None:
    assert decide(tmp_path, "a") != decide(tmp_path, "b")
    assert decide(tmp_path, "a", "--rdzv-id=mine") == "mine"
