"""Two runs of one machine are told apart by what they tell their ranks."""

from __future__ import annotations

from pathlib import Path

from headway.cli.run import _decide
from headway.cli.run_line import read_line
from headway.launch import Claims
from headway.telemetry import RunDir

OPTIONS = {"gpus": None, "cpus": 2, "when_free": None, "no_hook": False, "no_training": True, "on_hang": "wait"}


def decide(tmp_path: Path, name: str, *words: str) -> str:
    read = read_line(("torchrun", *words, "train.py"), None)
    foreign, _ = _decide(read, {**OPTIONS, "hang_after": 10.0}, Claims(name, tmp_path), RunDir(tmp_path / name))
    return foreign.environment(0, 2, 40001, 1, 0)["TORCHELASTIC_RUN_ID"]


def test_every_run_has_an_elastic_id_of_its_own_unless_the_line_names_one(tmp_path: Path) -> None:
    assert decide(tmp_path, "a") != decide(tmp_path, "b")
    assert decide(tmp_path, "a", "--rdzv-id=mine") == "mine"
