"""torchrun --nproc_per_node=8 atlas/train.py --config atlas/configs/train_config.yaml [--resume FILE] [--full-size]"""

import math  # noqa: F401  # 供下面的第二种写法使用 · for the second rule below
import os
import sys

PROJECT = "--project=" + os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

PYTHON = r"@PYTHON@"

# 学习率：线性缩放。更保守的写法是 base_lr * math.sqrt(world_size)；不缩放则写 base_lr。
# Learning rate: linear scaling. More careful: base_lr * math.sqrt(world_size). Not scaled: base_lr.
ranks = os.environ.get("WORLD_SIZE", "1")
base_lr, world_size = 1.0, int(ranks) if ranks.isdecimal() else 1  # anything else is refused below, in words
effective_lr = base_lr * world_size

own = [f"--lr-factor={effective_lr!r}", *sys.argv[1:]]
os.execv(PYTHON, [PYTHON, "-P", "-m", "headway", "guide", "atlas", "train", PROJECT, *own])
