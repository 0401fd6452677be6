"""python train_multi_gpu.py [--config FILE] [--full-size]: asks before it starts"""

import os
import sys

PROJECT = "--project=" + os.path.dirname(os.path.realpath(__file__))

PYTHON = r"@PYTHON@"
os.execv(PYTHON, [PYTHON, "-P", "-m", "headway", "guide", "layoutmaster", "train_multi_gpu", PROJECT, *sys.argv[1:]])
