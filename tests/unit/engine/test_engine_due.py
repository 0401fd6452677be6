"""Validations and checkpoints that a guide counts in epochs."""

from __future__ import annotations

import pytest

from fakes.engine_run import make_run
from headway.checkpoint import list_checkpoints
from headway.config import SaveConfig
from headway.engine.loop import train
from headway.engine.policy import is_due
from headway.engine.progress import Progress


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
