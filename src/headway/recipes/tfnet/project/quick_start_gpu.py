#!/usr/bin/env python3
"""python quick_start_gpu.py: check the machine, then train with configs/gpu_config.json"""

import os
import sys

PROJECT = "--project=" + os.path.dirname(os.path.realpath(__file__))

if __name__ == "__main__":
    line = ["@PYTHON@", "-P", "-m", "headway", "guide", "tfnet", "quick_start_gpu", PROJECT, "--python=" + sys.executable]
    os.execv(line[0], line + sys.argv[1:])
