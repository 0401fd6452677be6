"""python eval_sim/eval_rdt_libero.py --pretrained checkpoints/…/checkpoint-N/ema/model.safetensors …"""

import os
import sys

os.execv("@PYTHON@", ["@PYTHON@", "-P", "-m", "headway", "guide", "rdt", "evaluate", *sys.argv[1:]])
