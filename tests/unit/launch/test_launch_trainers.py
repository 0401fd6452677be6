# ruff: noqa: E501 - lines of trainers are kept whole
"""Lines of many trainers: step, total, loss and learning rate."""

from __future__ import annotations

import pytest

from headway.launch.recognise import ProgressReader

LINES = [
    ('tqdm plain', ['  3%|▎         | 3/100 [00:01<00:40,  2.40it/s]'], (3, 100, None, None)),
    ('tqdm s/it postfix', ['Training:  12%|█▏        | 120/1000 [10:02<1:13:37,  5.02s/it, loss=0.693, lr=1e-4]'], (120, 1000, 0.693, 0.0001)),
    ('tqdm steps kohya', ['steps:   1%|          | 16/1600 [00:21<35:12,  1.33s/it, avr_loss=0.0921]'], (16, 1600, 0.0921, None)),
    ('diffusers', ['Steps:   0%|          | 5/15000 [00:08<6:12:01,  1.49s/it, lr=1e-05, step_loss=0.0123]'], (5, 15000, 0.0123, 1e-05)),
    ('diffusers lora', ['Steps: 100%|██████████| 500/500 [03:17<00:00,  2.53it/s, loss=0.0345, lr=0.0001]'], (500, 500, 0.0345, 0.0001)),
    ('tqdm no total', ['120it [00:10, 11.9it/s, loss=0.5]'], (120, None, 0.5, None)),
    ('tqdm ascii', ['45%|####5     | 45/100 [00:45<00:55,  1.00it/s, v_num=0, train_loss=0.123]'], (45, 100, 0.123, None)),
    ('lightning 2', ['Epoch 3:  40%|████      | 40/100 [00:04<00:06,  9.50it/s, v_num=7, train_loss_step=0.410, train_loss_epoch=0.502]'], (40, None, 0.41, None)),
    ('lightning rich', ['Epoch 0/4  ━━━━━━━━━━━━━━━━ 120/469 0:00:03 • 0:00:10 38.20it/s v_num: 2.000 train_loss: 0.336'], (120, 2345, 0.336, None)),
    ('hf dict', ['  1%|          | 10/1000 [00:02<04:06,  4.01it/s]', "{'loss': 1.9435, 'grad_norm': 3.1, 'learning_rate': 1.98e-05, 'epoch': 0.03}"], (10, 1000, 1.9435, 1.98e-05)),
    ('hf dict str', ["{'loss': '2.3', 'grad_norm': '1.2', 'learning_rate': '5e-05', 'epoch': '0.1'}"], None),
    ('hf dict epoch only', ["{'loss': 0.45, 'learning_rate': 4.9e-05, 'epoch': 0.5}", "{'loss': 0.40, 'learning_rate': 4.8e-05, 'epoch': 1.0}"], None),
    ('swift', ['Train:   5%|▌         | 50/937 [01:40<29:35,  2.00s/it]', "{'loss': 1.234, 'acc': 0.65, 'grad_norm': 0.8, 'learning_rate': 9.9e-05, 'memory(GiB)': 15.2, 'epoch': 0.05, 'global_step/max_steps': '50/937', 'percentage': '5.34%', 'elapsed_time': '1m 40s', 'remaining_time': '29m 35s'}"], (50, 937, 1.234, 9.9e-05)),
    ('swift alone', ["{'loss': 1.234, 'learning_rate': 9.9e-05, 'epoch': 0.05, 'global_step/max_steps': '50/937', 'percentage': '5.34%'}"], (50, 937, 1.234, 9.9e-05)),
    ('llamafactory', ["[INFO|2025-01-01 10:00:00] llamafactory.train.callbacks:143 >> {'loss': 0.9123, 'learning_rate': 4.2e-05, 'epoch': 0.80, 'throughput': 3021.1}"], None),
    ('axolotl', ["  2%|▏         | 8/400 [00:31<25:30,  3.90s/it]{'loss': 1.41, 'grad_norm': 0.6, 'learning_rate': 0.00016, 'epoch': 0.02}"], (8, 400, 1.41, 0.00016)),
    ('mmengine epoch', ['05/12 10:11:12 - mmengine - INFO - Epoch(train)  [3][ 50/7330]  lr: 2.0000e-02  eta: 11:02:03  time: 0.45  data_time: 0.01  memory: 4012  loss: 0.7123  loss_cls: 0.3'], (50, None, 0.7123, 0.02)),
    ('mmcv epoch', ['2022-05-12 10:11:12,345 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.978e-03, eta: 1 day, 2:03:04, time: 0.812, data_time: 0.05, memory: 3902, loss_rpn_cls: 0.61, loss: 4.2345, grad_norm: 12.1'], (50, None, 4.2345, 0.001978)),
    ('mmcv iter', ['2022-05-12 10:11:12,345 - mmseg - INFO - Iter [50/160000]\tlr: 9.997e-03, eta: 1 day, 1:02:03, time: 0.5, data_time: 0.01, memory: 8000, decode.loss_ce: 2.1, loss: 3.01'], (50, 160000, 3.01, 0.009997)),
    ('nanogpt', ['step 0: train loss 10.9885, val loss 10.9898', 'iter 0: loss 10.9914, time 28733.24ms, mfu -100.00%', 'iter 10: loss 9.7, time 250.1ms, mfu 30.1%'], (10, None, 9.7, None)),
    ('modded nanogpt', ['step:125/1770 train_loss:6.2345 train_time:21123ms step_avg:170.1ms'], (125, 1770, 6.2345, None)),
    ('llm.c', ['step   12/18865 | train loss 9.123456 | norm 3.1 | lr 1.03e-05 | (220.1 ms | 2381 tok/s)'], (12, 18865, 9.123456, 1.03e-05)),
    ('torchtitan', ['[titan] 2024-09-01 10:00:00,000 - root - INFO - step: 10  loss:  7.8123  memory: 33.32GiB(42.12%)  tps: 6,123  mfu: 35.91%'], (10, None, 7.8123, None)),
    ('torchtitan colour', ['[rank0]:\x1b[32m2024-12-01 10:00:00 - root - INFO - \x1b[31mstep: 20  \x1b[32mloss:  6.1  \x1b[33mmemory: 3GiB(4%)  \x1b[34mtps: 900  \x1b[39m'], (20, None, 6.1, None)),
    ('megatron', [' [2025-01-01 10:00:00] iteration      100/  500000 | consumed samples:       25600 | elapsed time per iteration (ms): 1234.5 | learning rate: 1.500000E-05 | global batch size:   256 | lm loss: 8.123456E+00 | loss scale: 1.0 | grad norm: 1.234 |'], (100, 500000, 8.123456, 1.5e-05)),
    ('deepspeed', ['[2024-01-01 10:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=0, lr=[9.65e-06, 9.65e-06], mom=[(0.9, 0.95)]'], (20, None, None, 9.65e-06)),
    ('deepspeed chat', ['Epoch: 0, Step: 35, Rank: 0, loss = 1.8125'], (35, None, 1.8125, None)),
    ('fairseq json', ['2021-01-01 10:00:00 | INFO | train_inner | {"epoch": 1, "update": 0.01, "loss": "13.5", "nll_loss": "13.4", "num_updates": "100", "lr": "1.2e-05", "wall": "35"}'], (100, None, 13.5, 1.2e-05)),
    ('fairseq simple', ['2021-01-01 10:00:00 | INFO | train_inner | epoch 001:    100 / 1105 loss=13.5, nll_loss=13.4, ppl=10800, wps=12000, ups=3.2, num_updates=100, lr=1.25e-05, gnorm=3.1'], (100, None, 13.5, 1.25e-05)),
    ('detectron2', ['[03/04 10:11:12 d2.utils.events]:  eta: 1:02:03  iter: 19  total_loss: 2.345  loss_cls: 0.9  time: 0.31  data_time: 0.02  lr: 0.00039962  max_mem: 2500M'], (19, None, 2.345, 0.00039962)),
    ('paddledet', ['[05/12 10:11:12] ppdet.engine INFO: Epoch: [0] [ 20/1000] learning_rate: 0.000120 loss: 2.345 bbox_loss_cls: 0.1 eta: 5:01:02 batch_cost: 0.8'], (20, None, 2.345, 0.00012)),
    ('paddlenlp', ['global step 100, epoch: 1, batch: 100, loss: 0.56789, accu: 0.75, speed: 5.1 step/s'], (100, None, 0.56789, None)),
    ('paddlenlp trainer', ['[2023-05-01 10:00:00,000] [    INFO] - loss: 10.9, learning_rate: 3e-07, global_step: 10, interval_runtime: 12.3, interval_samples_per_second: 10.1, epoch: 0.01'], (10, None, 10.9, 3e-07)),
    ('paddlenlp progress', ['[INFO] - loss: 3.1, learning_rate: 3e-05, global_step: 20, current_memory_allocated: 1, progress_or_epoch: 0.2'], (20, None, 3.1, 3e-05)),
    ('keras', ['Epoch 1/5', '  12/1875 [..............................] - ETA: 9s - loss: 2.1034 - accuracy: 0.25'], (12, 9375, 2.1034, None)),
    ('keras3', ['Epoch 2/5', '\x1b[1m 120/1875\x1b[0m \x1b[32m━\x1b[0m\x1b[37m━━━\x1b[0m \x1b[1m3s\x1b[0m 2ms/step - accuracy: 0.55 - loss: 1.20'], (1995, 9375, 1.2, None)),
    ('timm', ['Train: 3 [ 100/1251 (  8%)]  Loss: 6.12 (6.34)  Time: 0.31s, 812.1/s  (0.32s,  799/s)  LR: 1.000e-04  Data: 0.01 (0.02)'], (100, None, 6.12, 0.0001)),
    ('swin', ['[2021-04-13 10:00:00 swin](main.py 195): INFO Train: [0/300][10/1251]\teta 0:12:34 lr 0.000001\ttime 0.4 (0.5)\tloss 6.93 (6.95)\tgrad_norm 1.9'], (10, 375300, 6.93, 1e-06)),
    ('mae', ['Epoch: [3]  [  20/1251]  eta: 0:10:11  lr: 0.000012  loss: 0.8123 (0.8345)  time: 0.5  data: 0.01  max mem: 12345'], (20, None, 0.8123, 1.2e-05)),
    ('ultralytics', ['        1/3      2.5G      1.158      1.382      1.272        120        640:  25%|██▌       | 5/20 [00:01<00:04,  3.70it/s]'], (5, 60, 3.812, None)),
    ('ultralytics new', ['      1/100      2.51G      1.185      2.904      1.303         14        640: 42% ━━━━━─────── 42/100 9.1it/s 4.6s<6.4s'], (42, 10000, 5.392, None)),
    ('yolov5', ['      0/2      3.2G   0.04123   0.06123   0.01612        205        640:  12%|█▎        | 2/16 [00:02<00:15,  1.10s/it]'], (2, 48, 0.11858, None)),
    ('mindspore loss monitor', ['epoch: 2 step: 50, loss is 1.2345678'], (50, None, 1.2345678, None)),
    ('mindformers', ['2024-01-01 10:00:00,000 - mindformers[callback.py:530] - INFO - { Epoch:[  1/ 10], step:[    2/ 6500], loss: 7.155, per_step_time: 1234ms, lr: 2.5641025e-08, overflow cond: False, loss_scale: 65536.0, global_norm: [1.2]}'], (2, 65000, 7.155, 2.5641025e-08)),
    ('mindcv', ['[2023-01-01 10:00:00] mindcv.utils.callbacks INFO - Epoch: [1/90], batch: [100/1251], loss: 6.9123, lr: 0.000100, time: 32.1s'], (100, 112590, 6.9123, 0.0001)),
    ('mindyolo', ['2023-06-01 10:00:00,000 [INFO] Epoch 1/300, Step 100/7329, imgsize (640, 640), loss: 7.1234, lbox: 0.05, lobj: 4.0, lcls: 2.9, cur_lr: 0.0913'], (100, 2198700, 7.1234, 0.0913)),
    ('openfold/lightning bar', ['Epoch 0:   1%|          | 3/500 [00:30<1:24:00, 10.13s/it, loss=112, v_num=1]'], (3, None, 112.0, None)),
    ('speechbrain', [' 12%|█▏        | 120/1000 [00:30<03:40,  4.0it/s, train_loss=3.21]'], (120, 1000, 3.21, None)),
    ('speechbrain epoch', ['epoch: 1, lr: 1.00e-03 - train loss: 3.45 - valid loss: 2.98, valid PER: 40.1'], None),
    ('accelerate megatron gpt-neox', ['  samples/sec: 12.3 | iteration      100/  320000 | elapsed time per iteration (ms): 600 | learning rate: 5.000E-06 | approx flops per GPU: 60TFLOPS | lm_loss: 9.1E+00 | loss scale: 65536.0 |'], (100, 320000, 9.1, 5e-06)),
    ('verl', ['step:12 - global_seqlen/min:123 - actor/pg_loss:0.012 - actor/lr:1e-06 - perf/mfu/actor:0.3'], (12, None, 0.012, 1e-06)),
    ('openrlhf', ['Train step of epoch 0:   3%|▎  | 30/1000 [01:00<32:20,  2.00s/it, gpt_loss=1.2, loss_mean=1.3, lr=5e-6]'], (30, None, 1.2, 5e-06)),
    ('composer', ['[batch=12/1000]:\n'], (12, 1000, None, None)),
    ('composer console', ['[epoch=0][batch=20/4800]: Train loss/train/total: 9.12'], (20, 4800, 9.12, None)),
    ('espnet', ['[host] 2023-01-01 10:00:00,000 (trainer:737) INFO: 1epoch:train:1-50batch: iter_time=0.05, forward_time=0.2, loss_ctc=310.1, loss=280.5, acc=0.01, backward_time=0.3, optim0_lr0=1.2e-06, train_time=1.2'], (50, None, 280.5, 1.2e-06)),
    ('nemo', ['Training epoch 0, iteration 9/99 | lr: 1.499e-07 | global_batch_size: 512 | global_step: 9 | reduced_train_loss: 11.03 | train_step_timing in s: 5.1'], (9, 99, 11.03, 1.499e-07)),
    ('jax/flax', ['I0101 10:00:00 1234 logging_writer.py:48] [100] accuracy=0.1, learning_rate=0.01, loss=4.6'], (100, None, 4.6, 0.01)),
    ('fastai', ['epoch     train_loss  valid_loss  accuracy  time    ', '0         0.612345    0.512345    0.75      00:12'], None),
    ('sb3', ['|    total_timesteps      | 2048     |', '|    loss                 | 0.0123   |'], None),
    ('rl lines', ['[Epoch 2/10] [Batch 30/100] [D loss: 0.51] [G loss: 1.2]'], (130, 1000, 0.51, None)),
    ('step prose', ['We take one step 3 to the left'], None),
    ('val excluded', ['Validation:  50%|█████     | 5/10 [00:01<00:01]'], None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "lines", "wanted"), LINES)
def test_a_trainers_lines_tell_step_total_loss_and_rate(name, lines, wanted):
    reader = ProgressReader()
    told = [found for line in lines if (found := reader.feed(line.encode())) is not None]
    if wanted is None:
        assert not told
        return
    losses = [one.loss for one in told if one.loss is not None] or [None]
    rates = [one.lr for one in told if one.lr is not None] or [None]
    assert (told[-1].step, told[-1].total) == wanted[:2]
    assert losses[-1] == pytest.approx(wanted[2])
    assert rates[-1] == pytest.approx(wanted[3])


def test_a_run_that_goes_on_in_a_later_epoch_counts_the_earlier_ones():
    found = ProgressReader().feed(b"Epoch [3/10], Step [5/100], Loss: 0.5")
    assert (found.step, found.total) == (205, 1000)


def test_the_loss_that_is_trained_on_comes_before_its_parts_and_before_validation():
    reader = ProgressReader()
    assert reader.feed(b"step 3/9 nll_loss=1.0 val_loss=7.0 loss=2.5").loss == 2.5
    assert reader.feed(b"step 4/9 kd_loss=1.5 eval/loss=7.0").loss == 1.5
