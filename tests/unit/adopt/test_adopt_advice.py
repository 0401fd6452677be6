"""Mistakes of guides in general, in words that no guide beside the repository uses, and what only looks like one."""

from __future__ import annotations

import pytest

from headway.adopt import read_guide


def fence(language: str, *lines: str) -> str:
    return "\n".join([f"```{language}", *lines, "```", "", ""])


TRAIN = fence("bash", "torchrun --nproc_per_node 4 train.py")
PRETRAIN = "torchrun --nproc_per_node 8 pretrain.py --global-batch-size 100"
WRONG = {
    "guide-product": "实际有效batch_size = 24 × 3(GPU) × 2(累积) = 128\n",
    "guide-utilisation": "Watch GPU utilization with `nvidia-smi`, target > 90%\n",
    "guide-accumulation": "- ✅ 自动调整batch size和梯度累积步数\n",
    "guide-data-parallel": "```python\nmodel = nn.DataParallel(model)\n```\n",
    "guide-json-comment": '```json\n{\n  "zero_stage": 2, // or 3\n  "fp16": true\n}\n```\n',
    "guide-yaml-number": "```yaml\neps: 1e-3\n```\n",
    "guide-personal-folder": "```bash\ncd /Users/lin/git/translator\n```\n",
    "guide-conda": "```bash\nconda activate diffuser\n```\n",
    "guide-workers-each": "```bash\naccelerate launch --num_processes 4 fit.py \\\n  --num_workers=6\n```\n",
    "guide-batch-each-device": "```bash\naccelerate launch --num_processes 4 fit.py\n```\n\n"
    "```yaml\ntrain_batch_size: 64  # total over all GPUs\n```\n",
    "guide-batch-total": "```yaml\ntrain_batch_size: 64  # global\n```\n",
    "guide-batch-each": "```yaml\nper_device_train_batch_size: 8  # per GPU\n```\n",
    "guide-effective-batch": TRAIN
    + fence("yaml", "per_device_train_batch_size: 4", "gradient_accumulation_steps: 8")
    + "Effective batch size = 4 * 8 = 32\n",
    "guide-batch-not-divisible": fence("bash", f"{PRETRAIN} --micro-batch-size 4"),
    "guide-rate-of-large-batch": "## configs/small.yaml\n\n```yaml\nglobal_batch_size: 64\n```\n\n"
    "## configs/big.yaml\n\n```yaml\nglobal_batch_size: 256\n```\n",
    "guide-rate-by-ranks": fence("yaml", "accumulation_steps: 4")
    + fence("python", "scaled_lr = args.lr * dist.get_world_size()"),
    "guide-rate-rule": "With a batch size 4x larger, use a learning rate 2x higher.\n",
    "guide-total-batch-memory": "```yaml\nmicro_batch_size: 8\n```\n\nOut of memory? Reduce `global_batch_size`.\n",
    "guide-card-memory": "| | 1 × RTX 4090 |\n|---|---|\n| memory used | 38 GB |\n",
    "guide-step-time": "| | 1 GPU | 4 GPUs |\n|---|---|---|\n| batch | 16 | 64 |\n| time per step | 2.0 s | 0.6 s |\n",
    "guide-speed": "epoch: ~10-12 min for 3000 samples\n\n2-3 samples/s\n",
    "guide-not-the-same": "Effective batch = 2 × 4 × 8 = 64 (same as batch 16, 8 GPUs)\n",
    "launch-no-mode": "```bash\npython train.py --cfg a.yaml\npython train.py --cfg a.yaml --mode train\n```\n",
}
RIGHT = {
    "a fraction before a product": "<answer> (1 + 2) / 3 * 4 = 4 </answer> and 8/3*4096=10922.67\n",
    "another strategy is used": "Use DistributedDataParallel rather than using DataParallel.\n",
    "strategies are compared": "Speed comes from `DataParallel` (DP) and `DistributedDataParallel` (DDP).\n",
    "a record is shown": '```json\n{"text": "...", // or a list\n "n": 1}\n```\n',
    "a place holder": '```json\n{"start": <int>, // first index\n "end": <int>}\n```\n',
    "a cloud's folder": "```bash\ncd /root/autodl-tmp/model\n```\n",
    "the reader's folder": "```bash\ncd /home/user/project\ncd /Users/yourname/x\n```\n",
    "the environment is made": "```bash\nconda create -n a python=3.11\nconda activate a\n```\n",
    "all GPUs are counted": TRAIN
    + fence("yaml", "batch_size: 8", "gradient_accumulation_steps: 2")
    + "Effective batch = 8 × 4 = 32\n",
    "tensor parallel ranks": fence("bash", f"{PRETRAIN} --micro-batch-size 25 --tensor-model-parallel-size 8"),
    "a rate that stands there": "## a.yaml\n\n```yaml\nglobal_batch_size: 64\nlearning_rate: 1.0e-4\n```\n\n"
    "## b.yaml\n\n```yaml\nglobal_batch_size: 256\n```\n",
    "accumulation is in the rate": fence("yaml", "accumulation_steps: 4")
    + fence("python", "lr = args.lr * world_size * accumulation_steps"),
    "no batch of a device": "Out of memory? Reduce `global_batch_size`.\n",
    "shorter sequences": "| | old | new |\n|---|---|---|\n| batch | 16 | 32 |\n"
    "| sequence length | 256 | 128 |\n| time per step | 2 s | 1 s |\n",
}


def codes(text: str) -> set[str]:
    return {one.code.removeprefix("adopt/") for one in read_guide(f"# Train\n\n{text}").findings}


@pytest.mark.parametrize("code", WRONG)
def test_a_mistake_is_found_in_other_words(code):
    assert code in codes(WRONG[code])


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_no_mistake_is_left_alone(case):
    assert not {
        one
        for one in codes(RIGHT[case])
        if one.startswith("guide-") and one not in ("guide-batch-each", "guide-batch-total")
    }
