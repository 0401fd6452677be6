"""A module whose import ends the process by a signal, so many times: DEADLY_IMPORT=SIGKILL:2:FILE."""

import os
import signal
from pathlib import Path

name, times, file = os.environ["DEADLY_IMPORT"].split(":")
tried = Path(file).stat().st_size if Path(file).exists() else 0
if tried < int(times):
    with Path(file).open("a") as counter:
        counter.write("x")
    os.kill(os.getpid(), getattr(signal, name))
