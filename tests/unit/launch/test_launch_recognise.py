"""Progress in what trainers print. The lines are as their programs write them."""

from __future__ import annotations

import pytest

from headway.launch.recognise import ProgressReader


@pytest.mark.parametrize(
    ("line", "step", "total", "loss"),
    [
        (" 12%|█▏        | 12/100 [00:05<00:40,  2.19it/s, loss=1.25]", 12, 100, 1.25),
        ("iter 10: loss 4.2039, time 12.34ms, mfu 3.10%", 10, None, 4.2039),
        ("step 00010/21400 (0.05%) | loss: 8.125 | lrm: 1.00 | dt: 500ms", 10, 21400, 8.125),
        ("epoch: 1 step: 100, loss is 2.3025", 100, None, 2.3025),
        ("Epoch [1/5], Step [100/600], Loss: 0.1523", 100, 3000, 0.1523),
        ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 0.234567", 640, None, 0.234567),
        (
            "11/15 10:00:00 - mmengine - INFO - Iter(train) [  50/1000]  lr: 1.0000e-02  eta: 0:10:00  loss: 0.9000",
            50,
            1000,
            0.9,
        ),
        ("Epoch: [0][ 10/5005]\tTime  0.1 ( 0.2)\tLoss 6.9e+00 (7.0e+00)", 10, None, 6.9),
        (" iteration       10/     100 | consumed samples: 80 | lm loss: 1.05E+01 | grad norm: 1.0", 10, 100, 10.5),
        ("[2026-11-15] [INFO] steps: 20 loss: 0.5123 iter time (s): 0.1", 20, None, 0.5123),
    ],
)
def test_a_trainers_line_tells_step_total_and_loss(line, step, total, loss):
    found = ProgressReader().feed(line.encode())
    assert found is not None
    assert (found.step, found.total, found.loss) == (step, total, loss)


def test_a_hugging_face_record_belongs_to_the_bars_last_step():
    reader = ProgressReader()
    reader.feed(b" 10%|#         | 50/500 [00:10<01:30,  5.00it/s]")
    found = reader.feed(b"{'loss': 2.31, 'grad_norm': 1.2, 'learning_rate': 4.5e-05, 'epoch': 0.1}")
    assert (found.step, found.loss, found.lr) == (50, 2.31, 4.5e-05)


def test_a_bar_that_begins_anew_in_each_epoch_is_added_up():
    reader = ProgressReader()
    steps = [
        reader.feed(f"Epoch {epoch}: {n}%|##| {n}/100 [00:01<00:02, 9.5it/s, train_loss=0.5]".encode()).step
        for epoch, n in ((0, 50), (0, 100), (1, 50), (1, 100), (2, 10))
    ]
    assert steps == [50, 100, 150, 200, 210]


def test_ultralytics_losses_are_summed():
    line = "      1/100      2.5G      1.250      2.250      1.500         12        640:  50%|█████| 10/20 [00:01]"
    found = ProgressReader().feed(line.encode())
    assert (found.step, found.loss) == (10, 5.0)


@pytest.mark.parametrize(
    "line",
    [
        "Validation: 50%|#####     | 5/10 [00:01<00:01]",
        "Downloading data: 10%|#     | 1/10 [00:01<00:01]",
        "loading step by step",
        "in step 3 we load the weights",
        "the loss function is cross entropy",
        "",
    ],
)
def test_other_lines_tell_nothing(line):
    assert ProgressReader().feed(line.encode()) is None


def test_no_line_however_strange_takes_long_or_breaks_the_reader():
    reader = ProgressReader()
    for line in (
        b"step " * 100_000,
        b"\xff" * 1000 + b"loss",
        b"loss: nan step 5",
        b"1%|" + b"|" * 10_000,
        b"epoch: " + b"9" * 5000,
    ):
        reader.feed(line)


def test_epochs_and_their_steps_give_the_total():
    reader = ProgressReader()
    told = reader.feed(b"Epoch [2/10], Step [300/600], Loss: 0.5")
    assert (told.total, told.loss) == (6000, 0.5)
    told = ProgressReader().feed(b"Epoch 1/3:  50%|#####     | 10/20 [00:01<00:01, 9.9it/s, loss=0.25]")
    assert (told.step, told.total) == (10, 60)
