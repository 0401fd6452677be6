"""python train.py --config config_data_action_head.json --mode train|predict [--resume FILE] [--checkpoint FILE]"""

import os
import sys

PROJECT = "--project=" + os.path.dirname(os.path.realpath(__file__))

PYTHON = r"@PYTHON@"
os.execv(PYTHON, [PYTHON, "-P", "-m", "headway", "guide", "layoutmaster", "train", PROJECT, *sys.argv[1:]])
