"""Validations and checkpoints that a guide counts in epochs."""

from __future__ import annotations

import numpy as np
import pytest

from fakes.engine_run import make_run, reports
from headway.checkpoint import list_checkpoints
from headway.config import SaveConfig
from headway.engine.loop import train
from headway.engine.policy import is_due
from headway.engine.progress import Progress
from headway.task.order import Order
from headway.telemetry import RunDir, read_metrics


def due_steps(wish: SaveConfig, *, batch: int, in_epoch: int, steps: int) -> list[int]:
    places = (Progress(step=step, position=step * batch) for step in range(1, steps + 1))
    return [place.step for place in places if is_due(wish, place, place.position - batch, in_epoch)]


@pytest.mark.parametrize(
    ("batch", "in_epoch", "expected"),
    [
        (32, 800, [250, 500, 750, 1000]),  # the guide: 25 steps an epoch
        (32, 190, [60, 119, 179, 238, 297, 357, 416, 475, 535, 594, 654, 713, 772, 832, 891, 950]),
    ],
)
def test_a_checkpoint_falls_on_the_step_in_which_the_tenth_epoch_ends(batch, in_epoch, expected):
    found = due_steps(SaveConfig(every_epochs=10), batch=batch, in_epoch=in_epoch, steps=1000)
    assert found == expected
    assert all((step - 1) * batch < (n + 1) * 10 * in_epoch <= step * batch for n, step in enumerate(found))


def test_steps_and_epochs_go_beside_each_other():
    assert due_steps(SaveConfig(every=4, every_epochs=1), batch=2, in_epoch=6, steps=12) == [3, 4, 6, 8, 9, 12]


def test_a_run_saves_where_its_epochs_end(tmp_path):
    # 97 samples, 8 a step: the epochs end inside steps 13 and 25.
    words = ("train.steps=26", "batch.per_device=8", "save.every_epochs=1", "save.keep_last=9")
    run = make_run(tmp_path, *words)
    train(run)
    assert [info.step for info in list_checkpoints(run.checkpoints)] == [13, 25, 26]


def test_an_epoch_that_ends_in_samples_left_out_counts_with_the_step_after_them(tmp_path):
    # 18 samples, 4 a step: the first epoch ends inside the fifth batch, which is left out after a roll-back; the bad
    # sample comes again in the seventh.
    bad = int(Order(18, 0).samples(np.arange(16, 17))[0][0])
    words = ("train.steps=6", "batch.per_device=4", "task.samples=18", f"task.nan_samples=[{bad}]")
    due = ("save.every=2", "save.every_epochs=1", "save.keep_last=9", "eval.every_epochs=1")
    run = make_run(tmp_path, *words, *due, "guard.policy=rollback")
    train(run)
    assert (run.progress.step, run.progress.position, run.progress.skips) == (6, 32, [(16, 20), (24, 28)])
    assert [info.step for info in list_checkpoints(run.checkpoints)] == [2, 4, 5, 6]
    # Step 5 was saved with its validation owed, so the second roll-back, to it, holds that once more.
    assert {event["step"] for event in reports(tmp_path, "validation")} == {5, 6}
    rows = read_metrics(RunDir(tmp_path).metrics(0))
    assert list(rows["samples"]) == [4, 8, 12, 16, 24, 32] and set(rows["lr"]) == {0.01}
