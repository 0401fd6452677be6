"""python atlas/eval.py --config atlas/configs/train_config.yaml --checkpoint checkpoints/best_model.pt [--split val]"""

import os
import sys

PROJECT = "--project=" + os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

PYTHON = r"@PYTHON@"
os.execv(PYTHON, [PYTHON, "-P", "-m", "headway", "guide", "atlas", "eval", PROJECT, *sys.argv[1:]])
