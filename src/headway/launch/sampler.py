"""The supervisor's end of the sampler, which reads devices and host; whatever happens to it, the run continues."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from headway.launch.job import Job
from headway.launch.output import read_ready
from headway.process import TAG_NAME
from headway.telemetry import RunDir

_END_S: Final = 1.0
"""It takes one last reading; a driver that hangs must not hold up the end of a run."""
_ANSWER_BYTES: Final = 1 << 16


class DeviceSampler:
    """Starts the process, tells it who the ranks are, and hears what it finds."""

    def __init__(self, run: RunDir, job: Job) -> None:
        wanted = [] if job.devices is None else [",".join(job.devices)]
        environment = {name: value for name, value in os.environ.items() if name != TAG_NAME}
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "headway.diagnosis.live",
                str(os.getpid()),
                str(run.root.absolute()),
                *wanted,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the supervisor
        )
        assert self._process.stdout is not None and self._process.stdin is not None
        self.fd = self._process.stdout.fileno()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._process.stdin.fileno(), False)
        self._rest = b""

    def watch(self, pids: Sequence[int]) -> None:
        """Name the processes of the ranks."""
        assert self._process.stdin is not None
        order = json.dumps({"ranks": [max(0, pid) for pid in pids]}).encode() + b"\n"
        with contextlib.suppress(OSError):  # gone, or it has not read the last word in a driver that hangs
            os.write(self._process.stdin.fileno(), order)

    def hear(self) -> tuple[list[dict[str, Any]], bool]:
        """Return what it has found since, and whether it is gone."""
        data, is_over = read_ready(self.fd, _ANSWER_BYTES)
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return [one for one in found if isinstance(one, dict) and "kind" in one], is_over

    def close(self) -> list[dict[str, Any]]:
        """Let it take its last reading, end it, and return what it found at last."""
        assert self._process.stdout is not None and self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
        found, _ = self.hear()
        self._process.stdout.close()
        return found
