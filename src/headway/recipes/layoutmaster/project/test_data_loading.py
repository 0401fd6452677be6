"""python test_data_loading.py [--config FILE]: are the posters there, and how fast are they read?"""

import os
import sys

PYTHON = r"@PYTHON@"
os.execv(PYTHON, [PYTHON, "-P", "-m", "headway", "guide", "layoutmaster", "test_data_loading", *sys.argv[1:]])
