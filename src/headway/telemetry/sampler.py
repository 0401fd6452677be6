"""The sampler: a process beside the supervisor that reads devices and host into the run directory.

A process of its own, for a driver may hang in the kernel and take with it whoever asked. It reads who the ranks are
from its standard input, one JSON object per attempt, ends when that is closed or its parent dies, and says on its
standard output what it finds. Readings are as far apart as they must be for it to use at most 0.4% of a core.
What is wrong is for a `Judge` to say; `headway.diagnosis.live` starts it with one that looks at everything.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from headway.process import die_with_parent, name_process
from headway.telemetry.device_findings import DeviceFindings
from headway.telemetry.devices import DeviceLog
from headway.telemetry.event_files import EventFileWatch
from headway.telemetry.lines import encode_line
from headway.telemetry.reading import read_record, section, words
from headway.telemetry.rundir import RunDir
from headway.telemetry.sample_gpu import GpuReader, GpuSource, find_source
from headway.telemetry.sample_host import HostSampler

INTERVAL_S: Final = 2.0
_FIRST_S: Final = 1.0
_FIRST_READINGS: Final = 20
"""A short run gets more than a handful of readings."""
_COST_SHARE: Final = 0.004


class Judge(Protocol):
    """Answers one question: what is wrong now?"""

    def take(self, reading: dict[str, Any], pids: Collection[int]) -> list[dict[str, Any]]:
        """Return the events that follow from a reading; `pids` are all processes of the run."""
        ...

    def close(self) -> list[dict[str, Any]]:
        """Return the events of the end of the run."""
        ...


MakeJudge = Callable[[RunDir, dict[str, Any]], Judge]
"""Makes it for a run, from what does not change about the machine."""


class _DevicesAlone:
    """Looks at the devices and at nothing else."""

    def __init__(self, about: dict[str, Any]) -> None:
        self._findings = DeviceFindings(about)

    def take(self, reading: dict[str, Any], pids: Collection[int]) -> list[dict[str, Any]]:
        """Return the events that follow from a reading."""
        return self._findings.take(reading)

    def close(self) -> list[dict[str, Any]]:
        """Return the events of the end of the run."""
        return self._findings.close()


class Sampler:
    """Takes one reading after the other."""

    def __init__(self, run: RunDir, parent: int, source: GpuSource | None, make_judge: MakeJudge | None = None) -> None:
        self._host = HostSampler(parent, run.root)
        self._gpus = GpuReader(source) if source is not None else None
        self._log = DeviceLog(run.devices)
        about = {**self._host.about(), "interval_s": INTERVAL_S, "gpus": source.about() if source is not None else []}
        self._log.about(about)
        folder = words(section(read_record(run.job).get("foreign")).get("cwd"))
        self._event_files = EventFileWatch(run, parent, folder) if folder else None
        self._judge: Judge = make_judge(run, about) if make_judge is not None else _DevicesAlone(about)
        self._num = 0

    def read(self, ranks: Sequence[int]) -> list[dict[str, Any]]:
        """Take and write a reading; return what was found."""
        now = time.monotonic()
        reading: dict[str, Any] = {"t": round(time.time(), 2)}
        if self._gpus is not None:
            reading["gpus"] = self._gpus.read(now)
        reading.update(self._host.read(now, ranks))
        self._log.add(reading)
        self._num += 1
        if self._event_files is not None:
            self._event_files.look(now)
        return self._judge.take(reading, self._host.pids)

    def wait_s(self, cost_s: float) -> float:
        """Return how long to wait after a reading that took so much processor time."""
        return max(_FIRST_S if self._num < _FIRST_READINGS else INTERVAL_S, cost_s / _COST_SHARE)

    def close(self) -> list[dict[str, Any]]:
        """Let go of the file; return the events of the end."""
        self._log.close()
        if self._event_files is not None:
            self._event_files.close()
        return self._judge.close()


def serve(sampler: Sampler, orders: int, answers: int) -> None:
    """Read until the orders end."""
    ranks: list[int] = []
    rest, due = b"", time.monotonic()
    while True:
        ready, _, _ = select.select([orders], [], [], max(0.0, due - time.monotonic()))
        if ready:
            data = os.read(orders, 1 << 16)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            ranks = json.loads(lines[-1])["ranks"] if lines else ranks
        if time.monotonic() >= due:
            before = _cpu_s()
            _tell(answers, sampler.read(ranks))
            due = time.monotonic() + sampler.wait_s(_cpu_s() - before)
    _tell(answers, sampler.read(ranks))


def _tell(answers: int, events: Sequence[dict[str, Any]]) -> None:
    for event in events:
        os.write(answers, encode_line(event))


def _cpu_s() -> float:
    """Return the processor time of this process and of programs it has asked."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def main(argv: Sequence[str], make_judge: MakeJudge | None = None) -> int:
    """Serve one supervisor."""
    parent, place, *wanted = argv
    die_with_parent(int(parent))
    name_process("headway-sampler")
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(signum, signal.SIG_IGN)  # the supervisor says when it is over
    gpus = None if not wanted else [name for name in wanted[0].split(",") if name]
    sampler = Sampler(RunDir(Path(place)), int(parent), find_source(gpus), make_judge)
    serve(sampler, sys.stdin.fileno(), sys.stdout.fileno())
    _tell(sys.stdout.fileno(), sampler.close())
    os._exit(0)  # a thread that waits for a driver must not keep us
