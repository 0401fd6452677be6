"""A rank of a line that is not ours: it is started with the names that its own launcher would have set."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from headway.launch.hook import hook_environment
from headway.launch.job import ForeignLine, Job, ranks_environ
from headway.launch.own_engine import rank_call
from headway.launch.program import RankOrder, Seat
from headway.redact import remember_secrets
from headway.telemetry import RunDir

EXEC_ENTRY: Final = "headway.launch.foreign.exec:main"
COERCED: Final = "LC_CTYPE"
"""Set by Python in its own environment where the locale is C (PEP 538); a program of the user must not inherit it."""
_GIVEN: Final = Path("/proc/self/environ")
_LOG_BYTES: Final = 64 << 20
_MOST_LINE_BYTES: Final = 64 << 10
"""Of a line that is sent whole: half of a packet to the nursery."""


def has_given(name: str) -> bool:
    """Say whether this process was started with a variable; `os.environ` also holds what Python has added."""
    try:
        given = _GIVEN.read_bytes()
    except OSError:  # no /proc
        return False
    return any(one.startswith(f"{name}=".encode()) for one in given.split(b"\0"))


class LineProgram:
    """Ranks that know nothing of Headway: they print lines, end with an exit code, and may carry the hook."""

    log_bytes = _LOG_BYTES

    def __init__(self, run: RunDir, job: Job, line: ForeignLine) -> None:
        self._run, self._job, self._line = run, job, line
        self._environ = ranks_environ(job)
        remember_secrets(self._environ)

    def order(self, seat: Seat) -> RankOrder:
        """Return what the rank in this seat is started with."""
        return RankOrder(call={**rank_call(self._run, seat), **self._words}, env=self._env(seat))

    @cached_property
    def _words(self) -> dict[str, Any]:
        """What a rank executes: it needs no file, so that a directory that goes away at its start does not end it.

        A line too long for a packet is read from job.json, but for the words that job.json may not hold.
        """
        line = self._line
        whole = {"argv": list(line.argv), "cwd": line.cwd, "has_macros": line.has_macros}
        if len(json.dumps(whole)) < _MOST_LINE_BYTES:
            return whole
        written = zip(line.argv, line.to_json()["argv"], strict=True)
        return {"hidden": {str(at): word for at, (word, shown) in enumerate(written) if word != shown}}

    def _env(self, seat: Seat) -> dict[str, str]:
        line, devices = self._line, self._job.devices
        found = {"HEADWAY_RANK": str(seat.rank)} if line.mode == "native" else {}
        found["HEADWAY_HOOK_FAMILY"] = "1" if line.makes_ranks else ""
        if devices is not None:
            found["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
            if devices and all(name.isdigit() for name in devices):
                # Indexes are the driver's (PCI order), so CUDA must count the same way.
                found["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        if line.is_distributed:
            found |= seat.names() | self._elastic(seat)
            # As torchrun does: several ranks on one machine must not each start one thread per core.
            if seat.world_size > 1 and "OMP_NUM_THREADS" not in self._environ:
                found["OMP_NUM_THREADS"] = "1"
        return found | (hook_environment(self._run.root, seat.attempt, self._environ) if line.has_hook else {})

    def _elastic(self, seat: Seat) -> dict[str, str]:
        """Return what torchrun adds; its agent's store apart, for rank 0 opens a fresh one in every attempt."""
        return {
            "GROUP_RANK": "0",
            "GROUP_WORLD_SIZE": "1",
            "ROLE_RANK": str(seat.rank),
            "ROLE_WORLD_SIZE": str(seat.world_size),
            "TORCHELASTIC_RESTART_COUNT": str(seat.attempt - 1),
            "TORCHELASTIC_MAX_RESTARTS": str(self._job.restarts),
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": self._environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
            "TORCHELASTIC_RUN_ID": self._line.run_id,
            "ROLE_NAME": self._line.role,
        }
