"""Progress in what trainers print: how lines follow each other, and what is not progress of training."""

from __future__ import annotations

import math
import time

import pytest

from headway.launch.foreign.printed import ProgressReader


def last(*lines):
    """Return the last thing that lines told."""
    reader = ProgressReader()
    told = [found for line in lines if (found := reader.feed(line.encode())) is not None]
    return told[-1] if told else None


def test_a_hugging_face_record_belongs_to_the_bars_last_step():
    told = last(
        " 10%|#         | 50/500 [00:10<01:30,  5.00it/s]",
        "{'loss': 2.31, 'grad_norm': 1.2, 'learning_rate': 4.5e-05, 'epoch': 0.1}",
    )
    assert (told.step, told.total, told.loss, told.lr) == (50, 500, 2.31, 4.5e-05)


def test_hugging_face_without_bars_counts_by_the_epochs_of_its_header():
    told = last(
        "[INFO|trainer.py:2136] 2024-05-01 10:00:00,000 >>   Num Epochs = 4",
        "[INFO|trainer.py:2141] 2024-05-01 10:00:00,000 >>   Total optimization steps = 800",
        "{'loss': 0.7, 'learning_rate': 5e-05, 'epoch': 0.5}",
    )
    assert (told.step, told.total, told.loss) == (100, 800, 0.7)


def test_a_bar_that_begins_anew_in_each_epoch_is_added_up():
    reader = ProgressReader()
    steps = [
        reader.feed(f"Epoch {epoch}: {n}%|##| {n}/100 [00:01<00:02, 9.5it/s, train_loss=0.5]".encode()).step
        for epoch, n in ((0, 50), (0, 100), (1, 50), (1, 100), (2, 10))
    ]
    assert steps == [50, 100, 150, 200, 210]


BAR = " {percent}%|██▎  | {n}/{of} [{took}<00:05, {rate}it/s{more}]"


def bar(n, of, took="00:10", rate="9.50", more="", name=""):
    return name + BAR.format(percent=100 * n // of, n=n, of=of, took=took, rate=rate, more=more)


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ([bar(90, 100), bar(100, 100), bar(30, 100, took="00:03")], (130, None)),
        (["Namespace(batch_size=8, epochs=10, lr=0.1)", bar(100, 100), bar(30, 100, took="00:03")], (130, 1000)),
        (["Epoch 3/10", bar(30, 100)], (230, 1000)),
        (["Epoch 3/10", "-" * 10, bar(30, 100, name="Training: ")], (230, 1000)),
        ([bar(0, 4, name="Epoch: "), bar(30, 100, name="Iteration: ")], (30, 400)),
        ([bar(1, 4, name="Epoch: "), bar(30, 100, name="Iteration: ")], (130, 400)),
        (["Starting training for 20 epochs...", bar(30, 100, name="Epoch 1: ")], (30, 2000)),
        (["epoch 1/10", bar(30, 100, name="steps: ", more=", avr_loss=0.1"), "epoch 2/10"], (30, 100)),
        ([bar(26, 500, name="Epoch 25, train loss: 0.5: ")], (26, 500)),
        ([bar(9, 40, name="Epoch 9/40: "), bar(10, 40, name="Epoch 10/40: ")], (10, 40)),
        (["Epoch 1/3", "Batch 200/600, loss: 0.5", "Epoch 2/3", "Batch 100/600, loss: 0.4"], (700, 1800)),
        (["Step 500/500 loss: 0.6", "Step 100/500 loss: 0.5"], (600, None)),
    ],
)
def test_an_inner_count_and_the_epochs_give_step_and_total(lines, wanted):
    told = last(*lines)
    assert (told.step, told.total) == wanted


def test_a_run_that_goes_on_in_a_later_epoch_counts_the_earlier_ones():
    told = last("Epoch [3/10], Step [5/100], Loss: 0.5")
    assert (told.step, told.total) == (205, 1000)


def test_a_count_that_goes_on_over_the_ends_of_epochs_is_the_runs():
    lines = [f"Epoch: {epoch} [ {n}/ 9000], loss: 0.5, LR: 0.1" for epoch, n in ((0, 50), (1, 150), (2, 250))]
    told = last(*lines)
    assert (told.step, told.total) == (250, 9000)
    told = last("[TRAIN] epoch: 1, iter: 90/500, loss: 1.0", "[TRAIN] epoch: 2, iter: 110/500, loss: 0.9")
    assert (told.step, told.total) == (110, 500)


def test_a_shorter_bar_without_a_name_is_an_evaluations():
    train, check = bar(100, 100, took="02:00"), bar(7, 13, took="00:04")
    told = last(train, check)
    assert told.step == 100
    told = last(train, check, bar(40, 100, took="00:50"))
    assert told.step == 140
    told = last(bar(50, 100, took="01:00"), "{'loss': 0.8, 'epoch': 1.5}", bar(13, 13), "{'eval_loss': 0.9}")
    assert (told.step, told.loss) == (50, 0.8)


def test_bars_of_several_ranks_in_one_output_are_not_added_up():
    lines = [bar(n, 100, took=f"01:{n - 60}") for n in (98, 99, 98, 100, 99, 100, 100)]
    assert last(*lines).step == 100


def test_a_prelude_gives_way_to_the_bar_that_takes_longer():
    told = last(bar(900, 900, took="00:20"), bar(10, 300, took="00:15"))
    assert told.step == 900
    told = last(bar(900, 900, took="00:20"), bar(20, 300, took="00:30"))
    assert (told.step, told.total) == (20, 300)
    told = last(bar(27, 27, took="00:01"), bar(3, 5000, took="00:01"))
    assert (told.step, told.total) == (3, 5000)


def test_the_count_with_a_loss_and_an_end_leads():
    told = last(
        "[2024-01-01 10:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=7, skipped=0, lr=[1e-05], mom=[[0.9]]",
        "[Step 7/100] Loss: 4.75 | Global Tokens/s: 2554.43 | Peak Mem: 27.45",
        "[2024-01-01 10:00:01,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=8, skipped=0, lr=[1e-05], mom=[[0.9]]",
    )
    assert (told.step, told.total, told.loss) == (7, 100, 4.75)
    told = last(
        " 10%|█  | 99/990 [10:00<90:00,  3.3s/it]",
        "[2024-01-01 10:00:01,000] [INFO] [logging.py:69:log_dist] [Rank 0] step=100, skipped=0, lr=[0.001]",
        " 10%|█  | 99/990 [10:00<90:00,  3.3s/it]",
    )
    assert (told.step, told.total) == (99, 990)


@pytest.mark.parametrize(
    "lines",
    [
        ["Downloading data: 10%|#     | 1/10 [00:01<00:01]"],
        ["config.json: 100%|██████████| 735/735 [00:00<00:00, 3.11MB/s]"],
        ["training_args.bin: 100%|██████████| 558/558 [00:00<00:00, 3.11kB/s]"],
        ["Map (num_proc=8):  24%|██▍       | 516/2130 [00:28<01:38, 16.38 examples/s]"],
        ["Tokenizing train dataset:  24%|██▍       | 516/2130 [00:28<01:38, 16.38 examples/s]"],
        ["Generating train split: 100%|██████████| 1000/1000 [00:00<00:00, 9000.1 examples/s]"],
        ["Loading checkpoint shards:  50%|█████     | 1/2 [00:05<00:05,  5.8s/it]"],
        ["Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.36s/it]"],
        ["rollout_controller for training samples:  94%|█████████▍| 120/128 [01:06<00:04,  1.81it/s]"],
        ["Calculating loss...: 100%|██████████| 12/12 [00:09<00:00,  1.23it/s]"],
        ["100%|██████████| 27/27 [00:00<00:00, 3173.14it/s]"],
        ["  0%|          | 0/27 [00:00<?, ?it/s]"],
        ["Validation: 50%|#####     | 5/10 [00:01<00:01]"],
        ["Validation DataLoader 0:  50%|█████     | 5/10 [00:01<00:01, 4.1it/s]"],
        ["Sanity Checking DataLoader 0:  50%|█████     | 1/2 [00:01<00:01, 4.1it/s]"],
        ["Epoch 10/30 [验证]: 100%|████████| 32/32 [00:28<00:00, loss=0.2987, dice=0.8123]"],
        ["Epoch 1/15 [VAL]: 100%|████| 94/94 [00:45<00:00, 2.1it/s, loss=0.4]"],
        ["   Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|███| 8/8 [00:03<00:00]"],
        ["Test: [   0/29]  Time: 0.560 (0.560)  Loss:  0.6912 (0.6912)  Acc@1: 87.5000 (87.5000)"],
        ["Test set: Average loss: 0.0252, Accuracy: 9921/10000 (99%)"],
        ["[2022-09-21 05:28:53,469] [    INFO] - [eval] epoch: 0, batch: 20, loss: 0.292, speed: 0.72 step/s"],
        ["05/15 03:34:08 - mmengine - INFO - Epoch(val) [6][5/5]    acc/top1: 0.6000  loss: 0.5  time: 0.2403"],
        ["| epoch 010 | valid on 'valid' subset  1000 / 1311 loss=1.60"],
        ["{'eval_loss': 0.9, 'eval_runtime': 1.9, 'epoch': 1.5}"],
        ["Step 3/12 : RUN pip install torch==2.3"],
        ["Step 1/3: loading data", "in step 3 we load the weights", "loading step by step"],
        ["Namespace(batch_size=32, epochs=10, lr=0.001, steps=1000, warmup_steps=100, loss='ce')"],
        ["=> loaded checkpoint 'ck.pth' (epoch 89)", "Resuming from epoch 3", "built 2024/05/06 with torch 2/3"],
        ["[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768"],
        ["slurmstepd: error: *** STEP 1486215.0 ON node-1 CANCELLED AT 2026-08-25T08:21:49 ***"],
        ["the loss function is cross entropy", "Eager mode Loss: 12.125", ""],
    ],
)
def test_other_lines_tell_nothing(lines):
    assert last(*lines) is None


def test_the_loss_that_is_trained_on_comes_before_its_parts_and_before_validation():
    assert last("step 3/9 nll_loss=1.0 val_loss=7.0 loss=2.5").loss == 2.5
    assert last("step 4/9 kd_loss=1.5 eval/loss=7.0").loss == 1.5
    assert last("iter: 5  loss_cls: 0.7  total_loss: 1.5  lr: 0.1").loss == 1.5
    assert last("iter: 5  loss1: 0.7  loss2: 0.5  loss: 1.2  lr: 0.1").loss == 1.2
    assert last("Epoch 1 | iter 9 step 4 | loss train: 1.689, val: n/a | iter time: 423.59 ms").loss == 1.689
    assert math.isnan(last(bar(8, 90, more=", class_loss=1.6, regr_loss=nan, total_loss=nan")).loss)


def test_a_loss_below_a_heading_of_validation_is_not_the_trainings():
    lines = ["step 10/90 loss 0.5", "*** Validation summary for epoch 1", "  loss=0.3 || top1=93.2"]
    assert last(*lines).loss == 0.5
    assert last(*lines, "  训练损失: 0.4").loss == 0.4


def test_keras_evaluates_with_the_bar_it_trains_with():
    told = last(
        "Epoch 2/2",
        "625/625 [==============================] - 12s 19ms/step - loss: 0.2 - accuracy: 0.7 - val_loss: 0.5",
        "79/79 [==============================] - 1s 9ms/step - loss: 0.9 - accuracy: 0.6",
    )
    assert (told.step, told.total, told.loss) == (1250, 1250, 0.2)


def test_no_line_however_strange_takes_long_or_breaks_the_reader():
    reader = ProgressReader()
    for line in (
        b"step " * 100_000,
        b"\xff" * 1000 + b"loss",
        b"loss: nan step 5",
        b"1%|" + b"|" * 10_000,
        b"epoch: " + b"9" * 5000,
        b"loss" + b" " * 5000,
        b"a_" * 1500 + b"loss",
        b"[a][a]" * 400 + b"test loss",
        b"  1/2  1G " + b"1.11 " * 500,
        b"12:12:12 " * 300 + b"val loss step",
        b"..." * 700 + b"1/2 %",
    ):
        begun = time.process_time()
        reader.feed(line)
        assert time.process_time() - begun < 0.5, line[:40]
    # The reader still reads.
    assert reader.feed(b"step 7/9 loss: 0.5").step == 7
