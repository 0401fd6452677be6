"""python train.py --config config_data_action_head.json --mode train|predict [--resume FILE] [--checkpoint FILE]"""

import os
import sys

PYTHON = r"@PYTHON@"
os.execv(PYTHON, [PYTHON, "-P", "-m", "headway", "guide", "layoutmaster", "train", *sys.argv[1:]])
