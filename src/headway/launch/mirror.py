"""The supervisor's end of the process that copies checkpoints elsewhere; whatever happens to it, the run continues."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from headway.launch.job import Job, Training
from headway.launch.output import read_ready
from headway.process import DETACHED, TAG_NAME
from headway.telemetry import RunDir, section

_MODULE: Final = "headway.bridges.mirror.serve"
_ANSWER_BYTES: Final = 1 << 16
_POLL_S: Final = 0.1
_STOPPED_WAIT_S: Final = 20.0
"""A run that was stopped or has failed waits no longer: whoever stopped it may kill it soon."""


def mirror_of(job: Job) -> str | None:
    """Return where the checkpoints of a job are copied to."""
    found = section(job.program.config.get("save")).get("mirror") if isinstance(job.program, Training) else None
    return found if isinstance(found, str) else None


class MirrorProcess:
    """Starts it, hears what it has done, and waits for the last copy."""

    def __init__(self, run: RunDir, job: Job) -> None:
        assert isinstance(job.program, Training)
        self._wait_s = float(section(job.program.config.get("save")).get("mirror_wait_s") or 0.0)
        ties = (TAG_NAME, DETACHED.partition("=")[0])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE, str(run.root.absolute())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name not in ties},
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the supervisor, and it may outlive us
        )
        assert self._process.stdout is not None
        self.fd = self._process.stdout.fileno()
        os.set_blocking(self.fd, False)
        self._rest = b""

    def hear(self) -> tuple[list[dict[str, Any]], bool]:
        """Return what it has done since, and whether it is gone. Any: plain JSON."""
        data, is_over = read_ready(self.fd, _ANSWER_BYTES)
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return [one for one in found if isinstance(one, dict) and "kind" in one], is_over

    def close(self, emit: Callable[..., None], *, is_done: bool, is_hurried: Callable[[], bool]) -> None:
        """Wait until the newest checkpoint is there; where that takes too long, it finishes by itself.

        Args:
            is_done: the run has finished; else the wait is short.
            is_hurried: whether somebody wants us to end now.
        """
        assert self._process.stdout is not None and self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        until = time.monotonic() + (self._wait_s if is_done else min(self._wait_s, _STOPPED_WAIT_S))
        is_over = False
        while not is_over and time.monotonic() < until and not is_hurried():
            found, is_over = self.hear()
            for event in found:
                emit(**event)
            if not is_over:
                time.sleep(_POLL_S)
        if not is_over:
            emit("warning", code="mirror/left-behind", facts={"pid": str(self._process.pid)})
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
        self._process.stdout.close()
