"""python atlas/eval.py --config atlas/configs/train_config.yaml --checkpoint checkpoints/best_model.pt [--split val]"""

import os
import sys

PYTHON = r"@PYTHON@"
os.execv(PYTHON, [PYTHON, "-P", "-m", "headway", "guide", "atlas", "eval", *sys.argv[1:]])
