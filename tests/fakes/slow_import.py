"""A framework that takes its time to import."""

import time

time.sleep(60)
