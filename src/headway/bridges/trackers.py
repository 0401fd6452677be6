"""The keeper's end of a tracker: a child that reads the run directory and talks to the tracker's own library."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import Final

from headway.bridges.deliver import outside_environ
from headway.bridges.notes import write_note
from headway.bridges.track_state import FOLDER, read_state
from headway.telemetry import RunDir, open_beneath

_KILL_S: Final = 0.5


class Feeder:
    """One tracker's child."""

    def __init__(self, run: RunDir, name: str) -> None:
        self._run, self.name = run, name
        (run.root / FOLDER).mkdir(exist_ok=True)
        self.log = run.root / FOLDER / f"{name}.log"
        log = open_beneath(self.log, os.O_WRONLY | os.O_APPEND)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "headway.bridges.track", str(os.getpid()), name, str(run.root)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=outside_environ(),
                cwd=os.getcwd(),
                start_new_session=True,
            )
        finally:
            os.close(log)

    def is_alive(self) -> bool:
        """Say whether it still works."""
        return self._process.poll() is None

    def ask_to_end(self) -> None:
        """The run is over: it sends what is left and goes."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def close(self, waited_s: float) -> None:
        """End it, with all that its library has started."""
        if self.is_alive():
            step = read_state(self._run, self.name).step
            facts = {"tracker": self.name, "seconds": f"{waited_s:.0f}", "step": step, "log": str(self.log)}
            write_note(self._run, "trouble", code="alert/tracker-slow", facts=facts)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILL_S)
