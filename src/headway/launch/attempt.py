"""One attempt: its ranks, what they print and report, and how each of them ended."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from headway.diagnosis import ExitStatus, Hang
from headway.launch.background import BackgroundWait
from headway.launch.nursery import Nursery
from headway.launch.oom_kills import OomCount
from headway.launch.output import AppendFile, RankOutput, read_ready
from headway.launch.program import Crew, Program, Seat
from headway.telemetry import RunDir

READ_BYTES: Final = 1 << 18
"""Most output taken from one rank at a time, so that a flood never delays signals and deaths."""
DRAIN_BYTES: Final = 1 << 24
"""More than any pipe holds."""
_REPORT_BYTES: Final = 1 << 20
_F_SETPIPE_SZ: Final = 1031
_PIPE_BYTES: Final = 1 << 20
_UNDER_WAY: Final = 16
"""Orders that the nursery may have before it; more would not start a rank sooner."""


class RankProcess:
    """One rank as the supervisor sees it."""

    def __init__(self, rank: int, output: RankOutput, node: int = 0) -> None:
        self.rank, self.output, self.node = rank, output, node
        """Of another node's ranks its follower tells what happens; here they have no files and no pid."""
        self.output_fd = self.report_fd = -1
        """-1: it was never ordered."""
        self.pid = 0
        """0: not forked yet; -1: forked on another node, or never."""
        self.far_pid: int | None = None
        """Its number on the node where it runs, for the history."""
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

    def open(self) -> tuple[int, int]:
        """Make its pipes; return the ends that the rank itself needs, for the caller to close."""
        self.output_fd, output = _pipe()
        self.report_fd, report = _pipe()
        return output, report

    def close_pipes(self) -> None:
        """Take back what `open` has made."""
        os.close(self.output_fd)
        os.close(self.report_fd)
        self.output_fd = self.report_fd = -1

    def never_start(self) -> None:
        """Give up a rank that was not ordered yet."""
        self.pid, self.status, self.is_stopped_by_us = -1, ExitStatus(), True

    def signal(self, signum: int) -> None:
        """Signal the rank alone, a dead one is fine; what it has started is found as the nursery's descendants."""
        self.is_stopped_by_us = self.is_stopped_by_us or (self.pidfd is not None and self.status is None)
        self.ask(signum)

    def ask(self, signum: int) -> None:
        """Signal the rank with a wish that does not end it."""
        if self.pidfd is None or self.status is not None:
            return
        # PermissionError: a program that has become another user's, as sudo does.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(self.pidfd, signum)

    def read_output(self, most_bytes: int = READ_BYTES) -> bool:
        """Keep what the rank has printed; say whether it can print no more."""
        if self.output_fd < 0:
            return True
        data, is_over = read_ready(self.output_fd, most_bytes)
        if data:
            self.output.feed(data)
        return is_over

    def read_reports(self) -> tuple[list[dict[str, Any]], bool]:
        """Return what the rank has reported since, and whether it can report no more."""
        if self.report_fd < 0:
            return [], True
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
        for fd in (self.output_fd, self.report_fd, self.pidfd):
            if fd is not None and fd >= 0:
                os.close(fd)


@dataclass(slots=True, kw_only=True)
class Attempt:
    """The ranks of one attempt."""

    number: int
    port: int
    ranks: list[RankProcess]
    seats: tuple[Seat, ...]
    node: int = 0
    """The one we are on."""
    nursery: int
    """Pid of the process that forks them and adopts what they leave behind."""
    began: float
    """On the monotonic clock."""
    oom_kills: OomCount
    """What the kernel has killed for want of memory, lately."""
    listener: socket.socket | None = None
    """Bound for rank 0 of our own engine, and open until that rank is ordered."""
    store_key: str = field(default_factory=lambda: secrets.token_hex(16))
    """What ranks of our own engine put before every name in their store; other users of the machine cannot guess it."""
    unsent: deque[RankProcess]
    """Ranks that the nursery has not been asked for yet."""
    is_whole: bool = False
    """All ranks have been forked."""
    away: set[int] = field(default_factory=set)
    """Other nodes that have not cleared up behind their ranks yet."""
    evidence_until: float | None = None
    """After the first failure: when to stop listening for what the other ranks have to say."""
    killed_at: float | None = None
    hang: Hang | None = None
    """Why it was killed, when it was for hanging."""
    background: BackgroundWait | None = None
    """After the ranks' good end: processes they have left behind, which are waited for."""

    def is_over(self) -> bool:
        """Say whether every rank has ended."""
        return not self.away and all(rank.status is not None for rank in self.ranks)

    def is_dead(self) -> bool:
        """Say whether every rank is dead by the kernel's word, be it not known yet how."""
        return self.is_whole and all(rank.status is not None or rank.seen_t is not None for rank in self.ranks)

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

    def here(self) -> list[RankProcess]:
        """Return the ranks of this node."""
        return [rank for rank in self.ranks if rank.node == self.node]

    def by_rank(self, rank: int) -> RankProcess:
        """Return the rank with this number; an attempt of one node of several begins with another than 0."""
        return self.ranks[rank - self.ranks[0].rank]

    def num_under_way(self) -> int:
        """Return how many ranks are ordered here and not yet forked."""
        return sum(rank.pid == 0 for rank in self.here()) - len(self.unsent)

    def close(self) -> None:
        """Let go of all files."""
        self.close_listener()
        for rank in self.ranks:
            rank.close()

    def close_listener(self) -> None:
        """Leave the socket to rank 0."""
        if self.listener is not None:
            self.listener.close()
            self.listener = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTargets:
    """Where the output of ranks goes."""

    merged: AppendFile | None
    """None: another node merges."""
    on_gap: Callable[[Any, OSError], None]
    on_lines: Callable[[int, list[bytes]], None]
    on_bar: Callable[[int, bytes], None]
    on_far_lines: Callable[[int, list[bytes]], None]
    """Of ranks on other nodes, whose own supervisor has looked for progress in them."""
    log_bytes: int | None
    """Size at which a log continues in a rotating tail; None: it is kept in full."""


def make_attempt(
    run: RunDir, crew: Crew, number: int, *, nursery: int, targets: OutputTargets, port: int | None
) -> Attempt:
    """Return an attempt all of whose ranks are still to be ordered, with a port that it alone has ever used.

    A foreign program opens its port itself: `port` is one that was chosen for it.
    """
    listener = None
    if port is None:
        # Bound now and handed over open: no other process can take the port between choice and use.
        family = socket.AF_INET6 if ":" in crew.address else socket.AF_INET
        listener = socket.create_server((crew.address, 0), family=family, backlog=max(128, crew.world_size))
        port = int(listener.getsockname()[1])
    seats = crew.seats(number, port)
    ranks = []
    for seat in seats:
        own = AppendFile(run.stdout(seat.rank), targets.on_gap, targets.log_bytes)
        on_lines = targets.on_far_lines if seat.node else targets.on_lines
        output = RankOutput(seat.rank, own, targets.merged, on_lines, targets.on_bar)
        ranks.append(RankProcess(seat.rank, output, seat.node))
    began = time.monotonic()
    return Attempt(
        number=number,
        port=port,
        ranks=ranks,
        seats=seats,
        nursery=nursery,
        began=began,
        oom_kills=OomCount(began),
        listener=listener,
        unsent=deque(rank for rank in ranks if rank.node == 0),
        away={seat.node for seat in seats if seat.node},
    )


def send_orders(program: Program, attempt: Attempt, nursery: Nursery) -> None:
    """Ask the nursery for more ranks, and never wait for it: it may be waiting for us to take its answers.

    Call it again after every answer, and now and then.
    """
    while attempt.unsent and attempt.num_under_way() < _UNDER_WAY:
        process = attempt.unsent[0]
        files = process.open()
        order = program.order(attempt.seats[process.rank - attempt.ranks[0].rank])
        if process.rank == 0 and attempt.listener is not None:
            order = replace(order, files={**order.files, "listen_fd": attempt.listener.fileno()})
        order = replace(order, call={**order.call, "store_key": attempt.store_key})
        try:
            nursery.fork(order, files)
        except BlockingIOError:  # its queue is full of ranks to fork
            process.close_pipes()
            return
        except OSError:
            pass  # a nursery that just died is noticed at its link
        finally:
            for file in files:
                os.close(file)
        attempt.unsent.popleft()
        if process.rank == 0:
            attempt.close_listener()


def _pipe() -> tuple[int, int]:
    read, write = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(read, False)
    with contextlib.suppress(OSError):  # a low fs.pipe-user-pages-soft only costs speed
        fcntl.fcntl(read, _F_SETPIPE_SZ, _PIPE_BYTES)
    return read, write
