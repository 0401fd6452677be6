"""python eval_sim/eval_rdt_libero.py --pretrained checkpoints/…/checkpoint-N/ema/model.safetensors …"""

import os
import sys

PROJECT = "--project=" + os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

os.execv("@PYTHON@", ["@PYTHON@", "-P", "-m", "headway", "guide", "rdt", "evaluate", PROJECT, *sys.argv[1:]])
