"""One attempt: its ranks, what they print and report, and how each of them ended."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from headway.diagnose import ExitStatus, Hang
from headway.launch.job import Job
from headway.launch.oom import OomCount
from headway.launch.output import AppendFile, RankOutput, read_ready
from headway.launch.warm import Nursery, RankOrder

READ_BYTES: Final = 1 << 18
"""Most output taken from one rank at a time, so that a flood never delays signals and deaths."""
DRAIN_BYTES: Final = 1 << 24
"""More than any pipe holds."""
_REPORT_BYTES: Final = 1 << 20
_F_SETPIPE_SZ: Final = 1031
_PIPE_BYTES: Final = 1 << 20


class RankProcess:
    """One rank as the supervisor sees it."""

    def __init__(self, rank: int, output: RankOutput) -> None:
        self.rank, self.output = rank, output
        self.output_fd, self._output_write = _pipe()
        self.report_fd, self._report_write = _pipe()
        self.pid = 0
        self.pidfd: int | None = None
        self.status: ExitStatus | None = None
        """How it ended; None while it lives."""
        self.error: dict[str, Any] | None = None
        """Its first error report."""
        self.finished: dict[str, Any] | None = None
        self.failed_at: float | None = None
        """When the failure was seen, on the supervisor's monotonic clock."""
        self.seen_t: float | None = None
        """When the supervisor learned of its death, in unix seconds; for the history."""
        self.ended_at: float | None = None
        """When a foreign rank ended with exit code 0."""
        self.is_stopped_by_us = False
        """We sent it a signal that may have ended it."""
        self._reports = b""

    def write_ends(self) -> tuple[int, int]:
        """Return the files the rank itself needs."""
        return self._output_write, self._report_write

    def close_write_ends(self) -> None:
        """Leave the write ends to the rank alone."""
        os.close(self._output_write)
        os.close(self._report_write)

    def signal(self, signum: int) -> None:
        """Signal the rank alone, a dead one is fine; what it has started is found as the nursery's descendants."""
        if self.pidfd is None or self.status is not None:
            return
        self.is_stopped_by_us = True
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signum)

    def read_output(self, most_bytes: int = READ_BYTES) -> bool:
        """Keep what the rank has printed; say whether it can print no more."""
        data, is_over = read_ready(self.output_fd, most_bytes)
        if data:
            self.output.feed(data)
        return is_over

    def read_reports(self) -> tuple[list[dict[str, Any]], bool]:
        """Return what the rank has reported since, and whether it can report no more."""
        data, is_over = read_ready(self.report_fd, DRAIN_BYTES)
        *lines, self._reports = (self._reports + data).split(b"\n")
        self._reports = self._reports[:_REPORT_BYTES]
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):  # a line torn by the rank's death, or printed there by mistake
                report = json.loads(line)
                if isinstance(report, dict):
                    found.append(report)
        return found, is_over

    def has_finished(self) -> bool:
        """Say whether it said so and then ended well."""
        return self.finished is not None and self.status is not None and self.status.code == 0

    def close(self) -> None:
        """Keep the last of its output and let go of its files."""
        self.read_output(DRAIN_BYTES)
        self.output.close()
        os.close(self.output_fd)
        os.close(self.report_fd)
        if self.pidfd is not None:
            os.close(self.pidfd)


@dataclass(slots=True, kw_only=True)
class Attempt:
    """The ranks of one attempt."""

    number: int
    port: int
    ranks: list[RankProcess]
    began: float
    """On the monotonic clock."""
    oom_kills: OomCount
    """What the kernel has killed for want of memory, lately."""
    is_whole: bool = False
    """All ranks have been forked."""
    evidence_until: float | None = None
    """After the first failure: when to stop listening for what the other ranks have to say."""
    killed_at: float | None = None
    hang: Hang | None = None
    """Why it was killed, when it was for standing still."""

    def is_over(self) -> bool:
        """Say whether every rank has ended."""
        return all(rank.status is not None for rank in self.ranks)

    def by_pid(self, pid: int) -> RankProcess | None:
        """Return the rank with this pid."""
        return next((rank for rank in self.ranks if rank.pid == pid), None)

    def saw_oom_kill(self) -> bool:
        """Say whether the kernel has killed for want of memory just now."""
        return self.oom_kills.has_grown(time.monotonic())

    def signal(self, signum: int) -> None:
        """Signal every rank that lives."""
        for rank in self.ranks:
            rank.signal(signum)

    def close(self) -> None:
        """Let go of all files."""
        for rank in self.ranks:
            rank.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTargets:
    """Where the output of ranks goes."""

    merged: AppendFile
    on_gap: Callable[[Any, OSError], None]
    on_lines: Callable[[int, list[bytes]], None]
    on_bar: Callable[[int, bytes], None]


def fork_attempt(job: Job, number: int, nursery: Nursery, targets: OutputTargets, port: int | None = None) -> Attempt:
    """Ask the nursery for all ranks, with a port that this attempt alone has ever used.

    A foreign program opens its port itself: `port` is one that was chosen for it.
    """
    oom_kills = OomCount(time.monotonic())
    # Bound now and handed over open: no other process can take the port between choice and use.
    with socket.create_server(("127.0.0.1", 0), backlog=max(128, job.world_size)) as listener:
        port = port or int(listener.getsockname()[1])
        ranks = []
        for rank in range(job.world_size):
            own = AppendFile(job.run.stdout(rank), targets.on_gap, job.log_bytes)
            process = RankProcess(rank, RankOutput(rank, own, targets.merged, targets.on_lines, targets.on_bar))
            has_listener = rank == 0 and job.foreign is None
            files = (*process.write_ends(), listener.fileno()) if has_listener else process.write_ends()
            order = RankOrder(job=job.order(rank, number, port), env=job.environment(rank, port, number), files=files)
            with contextlib.suppress(OSError):  # a nursery that just died is noticed at its link
                nursery.fork(order)
            process.close_write_ends()
            ranks.append(process)
    return Attempt(number=number, port=port, ranks=ranks, began=time.monotonic(), oom_kills=oom_kills)


def _pipe() -> tuple[int, int]:
    read, write = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(read, False)
    with contextlib.suppress(OSError):  # a low fs.pipe-user-pages-soft only costs speed
        fcntl.fcntl(read, _F_SETPIPE_SZ, _PIPE_BYTES)
    return read, write
