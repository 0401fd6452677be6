#!/usr/bin/env python3
"""python start_training_gpu.py [--config FILE] [key=value ...]"""

import os
import sys

PROJECT = "--project=" + os.path.dirname(os.path.realpath(__file__))

if __name__ == "__main__":
    line = ["@PYTHON@", "-P", "-m", "headway", "guide", "tfnet", "start_training_gpu", PROJECT, "--python=" + sys.executable]
    os.execv(line[0], line + sys.argv[1:])
