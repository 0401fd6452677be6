#!/usr/bin/env python3
"""python start_training_gpu.py [--config FILE] [key=value ...]"""

import os
import sys

if __name__ == "__main__":
    line = ["@PYTHON@", "-P", "-m", "headway", "guide", "tfnet", "start_training_gpu", "--python=" + sys.executable]
    os.execv(line[0], line + sys.argv[1:])
