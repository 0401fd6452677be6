"""What the ranks of an attempt let us know: deaths, reports and output, each from a file that becomes readable."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from headway.checkpoint import mark_for
from headway.diagnosis import ExitStatus
from headway.launch.attempt import Attempt, OutputTargets, RankProcess
from headway.launch.blame import evidence_window_s
from headway.launch.history import History
from headway.launch.output import AppendFile
from headway.launch.program import Program
from headway.telemetry import RunDir

FIRST: Final = 0
NEXT: Final = 1
LAST: Final = 2


class Hearing:
    """Holds the files that are listened to, and takes in what the ranks say."""

    def __init__(
        self, run: RunDir, program: Program, history: History, committed: int | None, *, merges: bool = True
    ) -> None:
        """Listen for a node; only one of several merges the output of all ranks."""
        self._run, self._program, self._history = run, program, history
        self._selector = selectors.DefaultSelector()
        self.committed = committed
        """Step of the newest checkpoint that the ranks have committed, or have gone back to."""
        self.reached: int | None = None
        """Steps that attempts before this one had finished; None: there was none, or what it lost has been told."""
        self.targets = OutputTargets(
            merged=AppendFile(run.log, history.gap, program.log_bytes) if merges else None,
            on_gap=history.gap,
            on_lines=self._hear_lines,
            on_far_lines=self._hear_far_lines,
            on_bar=self._hear_bar,
            log_bytes=program.log_bytes,
        )
        """Where their output goes."""

    def listen(self, fd: int, order: int, call: Callable[[], None]) -> None:
        """Call when a file becomes readable."""
        self._selector.register(fd, selectors.EVENT_READ, (order, call))

    def forget(self, fd: int) -> None:
        """Stop listening to a file."""
        if fd >= 0 and fd in self._selector.get_map():
            self._selector.unregister(fd)

    def is_listening(self, fd: int) -> bool:
        """Say whether a file is still listened to."""
        return fd in self._selector.get_map()

    def wait(self, timeout_s: float) -> None:
        """Wait for the next files, and hear them."""
        ready = self._selector.select(timeout_s)
        # Signals and deaths go before output, so that a flood of lines delays neither.
        for key, _ in sorted(ready, key=lambda item: item[0].data[0]):
            if self.is_listening(key.fd):
                key.data[1]()

    def close(self) -> None:
        """Listen to nobody any more."""
        self._selector.close()
        if self.targets.merged is not None:
            self.targets.merged.close()

    def begin(self, attempt: Attempt) -> None:
        """Listen to every rank of an attempt that has been forked."""
        for rank in attempt.ranks:
            if rank.pidfd is not None:
                self.listen(rank.pidfd, FIRST, partial(self._hear_death, rank))
            if rank.report_fd >= 0:
                self.listen(rank.report_fd, NEXT, partial(self.hear_reports, rank, attempt))
                self.listen(rank.output_fd, LAST, partial(self._hear_output, rank))

    def end(self, attempt: Attempt) -> None:
        """Stop listening to an attempt and close its files."""
        for rank in attempt.ranks:
            for fd in (rank.pidfd, rank.report_fd, rank.output_fd):
                if fd is not None:
                    self.forget(fd)
        attempt.close()

    def hear_exit(self, attempt: Attempt, pid: int, status: int, *, is_stopping: bool) -> None:
        """Take in how a process has ended, as the nursery that has reaped it says."""
        code = os.waitstatus_to_exitcode(status)
        if attempt.background is not None:
            attempt.background.hear_end(pid, ExitStatus(code=code) if code >= 0 else ExitStatus(signal=-code))
        rank = attempt.by_pid(pid)
        if rank is None:
            return
        self.hear_reports(rank, attempt)
        rank.read_output()
        if code >= 0:
            rank.status = ExitStatus(code=code, is_oom_kill=code > 0 and attempt.saw_oom_kill())
        else:
            # To ask the kernel costs more than all the rest here, and a stop of many ranks has its reason.
            is_asked = is_stopping and -code in (signal.SIGINT, signal.SIGTERM)
            rank.status = ExitStatus(signal=-code, is_oom_kill=not is_asked and attempt.saw_oom_kill())
        self._program.hear_end(rank, attempt)
        if rank.has_finished():
            rank.failed_at = None
        else:
            rank.failed_at = rank.failed_at or time.monotonic()
            _wait_for_evidence(rank, attempt)

    def hear_reports(self, rank: RankProcess, attempt: Attempt) -> None:
        """Take what a rank of our own engine has reported."""
        reports, is_over = rank.read_reports()
        if is_over:
            self.forget(rank.report_fd)
        for report in reports:
            match report.get("kind"):
                case "event":
                    self.hear_event(report.get("event"))
                case "finished":
                    rank.finished = report
                case "error" if rank.error is None:
                    # By our own clock and at once: who failed first is decided by it.
                    self.hear_failure(rank, attempt, report, time.monotonic())

    def hear_failure(self, rank: RankProcess, attempt: Attempt, error: dict[str, Any] | None, at: float) -> None:
        """Take in that a rank has failed, with what it has reported, if it has."""
        rank.error = rank.error or error
        rank.failed_at = at
        _wait_for_evidence(rank, attempt)

    def _hear_death(self, rank: RankProcess) -> None:
        """The kernel says it is dead; how, the nursery says a moment later."""
        assert rank.pidfd is not None
        self._selector.unregister(rank.pidfd)
        rank.seen_t = time.time()
        if rank.failed_at is None and rank.finished is None:
            rank.failed_at = time.monotonic()

    def hear_event(self, event: Any) -> None:
        """Write down what a rank has to tell. Any: JSON, not yet checked."""
        if not isinstance(event, dict) or not isinstance(event.get("kind"), str):
            return
        if event["kind"] == "checkpoint_committed" and isinstance(event.get("step"), int):
            self.committed = max(self.committed or 0, event["step"])
        elif event["kind"] == "training_started" and isinstance(event.get("step"), int):
            if event.get("source") != "memory":
                # What the ranks really went back to; a newer checkpoint may not have passed.
                self.committed = event["step"] or None
            if self.reached is not None:
                event["redone"] = max(0, self.reached - event["step"])
                self.reached = None
        elif event["kind"] == "checkpoint_failed":
            mark_for(self._run.checkpoints.absolute(), event)
        self._history.rank_event(event)

    def _hear_lines(self, rank: int, lines: list[bytes]) -> None:
        self._program.lines(rank, lines)
        self._history.lines(rank, lines)

    def _hear_far_lines(self, rank: int, lines: list[bytes]) -> None:
        self._history.lines(rank, lines)

    def _hear_bar(self, rank: int, state: bytes) -> None:
        self._program.lines(rank, [state])
        self._history.bar(rank, state)

    def _hear_output(self, rank: RankProcess) -> None:
        if rank.read_output():
            self._selector.unregister(rank.output_fd)


def _wait_for_evidence(rank: RankProcess, attempt: Attempt) -> None:
    """After the first failure: set when to stop listening for what the other ranks have to say."""
    until = time.monotonic() + evidence_window_s(rank)
    if attempt.evidence_until is None or until < attempt.evidence_until:
        attempt.evidence_until = until
