"""accelerate launch --num_processes 2 --multi_gpu --mixed_precision bf16 main.py --train_batch_size=16 …"""

import os
import sys

PROJECT = "--project=" + os.path.dirname(os.path.realpath(__file__))

# 使用 Headway 自己的解释器：启动器可能在另一个环境里。
# Headway's own interpreter: the launcher's may be another environment.
os.execv("@PYTHON@", ["@PYTHON@", "-P", "-m", "headway", "guide", "rdt", "train", PROJECT, *sys.argv[1:]])
