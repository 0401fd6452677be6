"""python train_multi_gpu.py [--config FILE] [--full-size]: asks before it starts"""

import os
import sys

PYTHON = r"@PYTHON@"
os.execv(PYTHON, [PYTHON, "-P", "-m", "headway", "guide", "layoutmaster", "train_multi_gpu", *sys.argv[1:]])
