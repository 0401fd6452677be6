"""What a program's lines tell about its run becomes events: its length, its validations, a loss that is NaN."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headway.errors import UsageError
from headway.launch.foreign.printed import ProgressReader
from headway.launch.foreign.printed_measures import find_measures, main_measure, sense
from headway.launch.foreign.resume_words import add_words, refuse_bad_words
from headway.launch.foreign.told import Told


class Kept:
    """A history that keeps its events."""

    def __init__(self):
        self.events = []

    def emit(self, kind, **facts):
        self.events.append({"kind": kind, **facts})

    def of(self, kind):
        return [one for one in self.events if one["kind"] == kind]


def tell(*lines, stops_at_nan=False):
    history = Kept()
    told, reader, last = Told(history, stops_at_nan=stops_at_nan), ProgressReader(), None
    for line in lines:
        now = reader.feed(line.encode())
        last = now or last
        told.line(line.encode(), now, last)
    return history


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("val loss 2.213", {"val_loss": 2.213}),
        ("step 500: train loss 1.9, val loss 2.0", {"val_loss": 2.0}),
        ("{'eval_loss': 0.5, 'eval_accuracy': 0.8, 'epoch': 1.0}", {"eval_loss": 0.5, "eval_accuracy": 0.8}),
        ("Epoch 1/3 - loss: 0.2 - val_loss: 0.31 - val_accuracy: 0.88", {"val_loss": 0.31, "val_accuracy": 0.88}),
        (
            "Test set: Average loss: 0.0500, Accuracy: 9835/10000 (98%)",
            {"test_accuracy": 0.9835, "test_loss": 0.05},
        ),
        ("验证损失：0.52 验证准确率：88.1%", {"val_loss": 0.52, "val_accuracy": 0.881}),
        ("best_val_loss=0.2 val_loss=0.3", {"val_loss": 0.3}),
        ("Test: [ 10/29] loss 0.5", {}),
        ("val:  40%|████      | 12/30 [00:01<00:02, 9.5it/s, val_loss=0.4]", {}),
        ("iter 0: loss 2.1, time 100ms", {}),
        ("Validation loss decreased (0.30 --> 0.28). Saving model", {}),
        ("best val loss: 0.3, saved", {}),
    ],
)
def test_results_of_a_validation_are_read_and_nothing_else(line, found):
    assert find_measures(line) == found


def test_a_loss_decides_and_each_measure_knows_its_way():
    assert main_measure(["val_acc", "val_loss"]) == "val_loss"
    assert [sense(name) for name in ("val_loss", "val_wer", "val_acc", "eval_f1")] == ["min", "min", "max", "max"]


def test_a_validation_belongs_to_the_step_before_it_and_the_best_is_marked():
    history = tell(
        "step 10: loss 2.0", "val loss 2.2", "step 20: loss 1.0", "val loss 1.2", "step 30: loss 0.9", "val loss 1.5"
    )
    found = history.of("validation")
    assert [(one["step"], one["measures"]["val_loss"], one["best"]) for one in found] == [
        (10, 2.2, True),
        (20, 1.2, True),
        (30, 1.5, False),
    ]


def test_a_program_that_prints_a_result_with_every_batch_does_not_fill_the_history():
    history = tell("step 1: loss 2.0", *(f"val loss {number}" for number in range(5000)))
    assert 20 <= len(history.of("validation")) <= 25


def test_the_length_is_told_once():
    history = tell("step 1/40 loss 2.0", "step 2/40 loss 2.0", "step 3/40 loss 1.9")
    assert [one["total_steps"] for one in history.of("length")] == [40]


@pytest.mark.parametrize(("stops", "code"), [(False, "launch/loss-not-finite"), (True, "launch/loss-not-finite-stop")])
def test_a_loss_that_is_nan_is_told_once(stops, code):
    history = tell("step 1: loss 2.0", "step 2: loss nan", "step 3: loss nan", stops_at_nan=stops)
    assert [(one["code"], one["facts"]["step"]) for one in history.of("warning")] == [(code, 2)]


def checkpoint(folder: Path, name: str, at: float) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    os.utime(path, (at, at))
    return path


def test_the_newest_checkpoint_of_this_run_takes_the_place_of_latest(tmp_path):
    checkpoint(tmp_path, "out/checkpoint-10.pt", 50)
    newest = checkpoint(tmp_path, "out/checkpoint-20.pt", 300)
    checkpoint(tmp_path, "out/checkpoint-5.pt", 200)
    checkpoint(tmp_path, "runs/log-9/model.pt", 900)
    found = add_words("--resume {latest}", ("python", "t.py"), tmp_path, 100.0, not_in=tmp_path / "runs")
    assert found.argv == ("python", "t.py", "--resume", str(newest)) and found.place == str(newest)


def test_a_variable_and_a_pattern_of_the_users_own(tmp_path):
    newest = checkpoint(tmp_path, "deep/a/b/c/d/state.bin", 300)
    found = add_words("RESUME={latest:deep/**/state.*}", ("bash", "-c", "x"), tmp_path, 100.0, not_in=tmp_path / "r")
    assert found.env == {"RESUME": str(newest)} and found.argv == ("bash", "-c", "x")


def test_a_checkpoint_of_another_run_is_none(tmp_path):
    checkpoint(tmp_path, "checkpoint-10.pt", 50)
    assert add_words("--resume {latest}", ("python", "t.py"), tmp_path, 100.0, not_in=tmp_path / "r") is None


@pytest.mark.parametrize(
    ("text", "argv", "code"),
    [
        ("--resume '{latest}", ("python", "t.py"), "run/resume-with"),
        ("  ", ("python", "t.py"), "run/resume-with"),
        ("--resume {latest}", ("bash", "-c", "python t.py"), "run/resume-with-shell"),
    ],
)
def test_words_without_a_place_are_refused_before_the_start(text, argv, code):
    with pytest.raises(UsageError) as refused:
        refuse_bad_words(text, argv)
    assert refused.value.code == code
