"""python test_data_loading.py [--config FILE]: are the posters there, and how fast are they read?"""

import os
import sys

PROJECT = "--project=" + os.path.dirname(os.path.realpath(__file__))

PYTHON = r"@PYTHON@"
os.execv(PYTHON, [PYTHON, "-P", "-m", "headway", "guide", "layoutmaster", "test_data_loading", PROJECT, *sys.argv[1:]])
