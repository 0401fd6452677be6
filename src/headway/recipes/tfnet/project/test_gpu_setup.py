#!/usr/bin/env python3
"""python test_gpu_setup.py: what this machine can train with"""

import os
import sys

PROJECT = "--project=" + os.path.dirname(os.path.realpath(__file__))

if __name__ == "__main__":
    line = ["@PYTHON@", "-P", "-m", "headway", "guide", "tfnet", "test_gpu_setup", PROJECT, "--python=" + sys.executable]
    os.execv(line[0], line + sys.argv[1:])
