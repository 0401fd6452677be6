"""The supervisor's loop: everything that can happen to a run arrives here as a readable file or a passed deadline."""

from __future__ import annotations

import math
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from headway.config import redact
from headway.diagnose import Diagnosis, ExitStatus
from headway.hook import hide_in_errors, read_error, remove_temps
from headway.launch.attempt import DRAIN_BYTES, Attempt, OutputTargets, RankProcess, fork_attempt
from headway.launch.blame import evidence_window_s
from headway.launch.hangs import HangWatch
from headway.launch.job import Job
from headway.launch.lease import RENEW_S, Lease
from headway.launch.outcome import Incident, Outcome, State
from headway.launch.output import AppendFile, merge_lines
from headway.launch.ports import PortHold
from headway.launch.processes import descendants, kill_all, sweep, without_cleaners
from headway.launch.progress import RestartBudget, StallWatch
from headway.launch.signals import SignalInbox
from headway.launch.telling import Telling
from headway.launch.terminal import leave_terminal
from headway.launch.verdict import Reach, Stop, Verdict, add_signal, explain_nursery, judge, read_reach
from headway.launch.verdict_foreign import Scene, judge_foreign
from headway.launch.warm import Nursery
from headway.launch.watching import ForeignWatch, HeartbeatWatch, Watch
from headway.telemetry import Beat, Event, read_events

_TICK_S: Final = 0.1
_DEATH_S: Final = 10.0
"""A killed rank that is not gone by then hangs in the kernel."""
_FIRST, _NEXT, _LAST = 0, 1, 2


class Supervisor:
    """Starts attempts, watches their ranks, and decides what follows each end. One run, one thread, no sleeping."""

    def __init__(self, job: Job, *, tell: Telling, nursery: Nursery, lease: Lease, inbox: SignalInbox) -> None:
        self.nursery = nursery
        self.keeps_nursery = False
        """The caller forks the ranks of its next run from it too."""
        self._job, self._run = job, job.run
        self._tell, self._lease, self._inbox = tell, lease, inbox
        history = read_events(job.run.events)
        self._number = max(_numbers(history, "attempt_started", "attempt"), default=0)
        self._committed = max(_numbers(history, "checkpoint_committed", "step"), default=None)
        self._steps = self._committed or 0
        self._budget = RestartBudget(job.restarts, self._committed, is_total=job.foreign is not None)
        self._stall = StallWatch()
        self._port = PortHold()
        foreign = ForeignWatch(job.run) if job.foreign is not None else None
        self._watch_ranks: Watch = foreign or HeartbeatWatch(job.run)
        self._hangs = HangWatch(job, foreign) if foreign is not None else None
        self._restart_at: float | None = None
        self._attempts = 0
        self._attempt: Attempt | None = None
        self._stop: Stop | None = None
        self._outcome: Outcome | None = None
        self._failed_at: float | None = None
        self._next_tick = self._next_renewal = 0.0
        self._selector = selectors.DefaultSelector()
        self._targets = OutputTargets(
            merged=AppendFile(job.run.log, tell.gap, job.log_bytes),
            on_gap=tell.gap,
            on_lines=self._on_lines,
            on_bar=self._on_bar,
        )

    def supervise(self) -> Outcome:
        """Run the loop until the run has ended."""
        self._watch(self._inbox.fd, _FIRST, self._on_signals)
        self._watch(self.nursery.link.fileno(), _NEXT, self._on_nursery)
        if self.nursery.is_ready:  # it has served another run
            self._begin_attempt()
        while self._outcome is None:
            ready = self._selector.select(self._timeout_s())
            # Signals and deaths go before output, so that a flood of lines delays neither.
            for key, _ in sorted(ready, key=lambda item: item[0].data[0]):
                if key.fd in self._selector.get_map():
                    key.data[1]()
            self._on_time()
        return self._outcome

    def give_up(self, why: str, facts: Mapping[str, object]) -> Outcome:
        """End the run as failed for a reason from outside the loop."""
        self._end("failed", 5, why, facts)
        assert self._outcome is not None
        return self._outcome

    def close(self) -> None:
        """Let go of files; what still lives is ended with the nursery."""
        if self._attempt is not None:
            self._attempt.signal(signal.SIGKILL)
            kill_all(without_cleaners(descendants(self.nursery.process.pid)))
            self._attempt.close()
        if not self.keeps_nursery:
            self.nursery.close()
        if self._job.foreign is not None:
            remove_temps(self._run.root)
            hide_in_errors(self._run.root, redact)
        self._watch_ranks.close()
        self._port.release()
        self._selector.close()
        self._targets.merged.close()

    # --- what arrives ---

    def _on_signals(self) -> None:
        for signum in self._inbox.read():
            if signum == signal.SIGHUP:
                if leave_terminal(self._run):
                    self._tell.emit("warning", code="launch/terminal-closed", facts={"run": self._run.name})
            else:
                self._ask_to_stop(signum)

    def _on_nursery(self) -> None:
        answer = self.nursery.receive()
        if answer is None:
            self._on_nursery_gone()
            return
        message, files = answer
        match message["kind"]:
            case "ready":
                merge_lines(self._targets.merged, "nursery", self.nursery.output().encode().splitlines())
                self._begin_attempt()
            case "failed":
                self._conclude_import(self.nursery.failure)
            case "forked":
                self._on_forked(message, files[0])
            case "fork_failed":
                self._on_fork_failed(message)
            case "exited":
                self._on_exited(message)

    def _on_forked(self, message: dict[str, Any], pidfd: int) -> None:
        assert self._attempt is not None
        rank = self._attempt.ranks[message["rank"]]
        rank.pid, rank.pidfd = message["pid"], pidfd
        if all(rank.pid for rank in self._attempt.ranks):
            self._on_whole(self._attempt)

    def _on_whole(self, attempt: Attempt) -> None:
        """All ranks are forked: say so, then listen to them."""
        facts: dict[str, object] = {
            "attempt": attempt.number,
            "world_size": self._job.world_size,
            "pids": [rank.pid for rank in attempt.ranks],
            "port": attempt.port,
            "resume_step": self._committed,
        }
        if self._failed_at is not None:
            facts["recover_ms"] = round((time.monotonic() - self._failed_at) * 1000, 1)
            self._failed_at = None
        attempt.is_whole = True
        self._tell.emit("attempt_started", **facts)
        for rank in attempt.ranks:
            if rank.pidfd is not None:
                self._watch(rank.pidfd, _FIRST, partial(self._on_death, rank))
            self._watch(rank.report_fd, _NEXT, partial(self._on_reports, rank))
            self._watch(rank.output_fd, _LAST, partial(self._on_output, rank))
        if self._stop is not None:
            attempt.signal(signal.SIGKILL if self._stop.is_now else self._polite_signal(self._stop))

    def _on_fork_failed(self, message: dict[str, Any]) -> None:
        assert self._attempt is not None
        rank = self._attempt.ranks[message["rank"]]
        rank.error = {"code": "diagnose/fork-failed", "facts": {"text": message["why"]}, "text": message["why"]}
        rank.status, rank.failed_at = ExitStatus(), time.monotonic()
        rank.pid = -1
        self._attempt.evidence_until = rank.failed_at
        if all(rank.pid for rank in self._attempt.ranks):
            self._on_whole(self._attempt)

    def _on_death(self, rank: RankProcess) -> None:
        """The kernel says it is dead; how, the nursery says a moment later."""
        assert rank.pidfd is not None
        self._selector.unregister(rank.pidfd)
        rank.seen_t = time.time()
        if rank.failed_at is None and rank.finished is None:
            rank.failed_at = time.monotonic()

    def _on_exited(self, message: dict[str, Any]) -> None:
        rank = self._attempt.by_pid(message["pid"]) if self._attempt else None
        if rank is None or self._attempt is None:
            return
        self._on_reports(rank)
        rank.read_output()
        code = os.waitstatus_to_exitcode(message["status"])
        if code >= 0:
            rank.status = ExitStatus(code=code, is_oom_kill=code > 0 and self._attempt.saw_oom_kill())
        else:
            rank.status = ExitStatus(signal=-code, is_oom_kill=self._attempt.saw_oom_kill())
        if self._job.foreign is not None:
            self._hear_foreign_end(rank, self._attempt)
        if rank.has_finished():
            rank.failed_at = None
        else:
            rank.failed_at = rank.failed_at or time.monotonic()
            self._on_failure(rank)

    def _hear_foreign_end(self, rank: RankProcess, attempt: Attempt) -> None:
        """A foreign rank reports nothing: exit code 0 is its word that it is done, the hook has kept its exception."""
        assert rank.status is not None
        if rank.status.code == 0:
            beat = self._beats(attempt)[rank.rank]
            rank.finished = {"state": "done", "step": beat.step if beat is not None else 0}
            rank.ended_at = time.monotonic()
            return
        told = read_error(self._run.rank(rank.rank), attempt.number)
        if told is not None and told.get("pid") == rank.pid and rank.error is None:
            rank.error = told
            # The same clock as ours, and earlier than the death: a process may take long to leave after its exception.
            rank.failed_at = min(rank.failed_at or math.inf, told["monotonic_ns"] / 1e9)

    def _on_reports(self, rank: RankProcess) -> None:
        reports, is_over = rank.read_reports()
        if is_over and rank.report_fd in self._selector.get_map():
            self._selector.unregister(rank.report_fd)
        for report in reports:
            match report.get("kind"):
                case "event":
                    self._on_rank_event(report.get("event"))
                case "finished":
                    rank.finished = report
                case "error" if rank.error is None:
                    rank.error = report
                    rank.failed_at = time.monotonic()
                    self._on_failure(rank)

    def _on_rank_event(self, event: Any) -> None:
        if not isinstance(event, dict) or not isinstance(event.get("kind"), str):
            return
        if event["kind"] == "checkpoint_committed" and isinstance(event.get("step"), int):
            self._committed = max(self._committed or 0, event["step"])
        self._tell.rank_event(event)

    def _on_output(self, rank: RankProcess) -> None:
        if rank.read_output():
            self._selector.unregister(rank.output_fd)

    def _on_lines(self, rank: int, lines: list[bytes]) -> None:
        self._watch_ranks.lines(rank, lines)
        self._tell.lines(rank, lines)

    def _on_bar(self, rank: int, state: bytes) -> None:
        self._watch_ranks.lines(rank, [state])
        self._tell.bar(rank, state)

    def _on_failure(self, rank: RankProcess) -> None:
        attempt = self._attempt
        assert attempt is not None and rank.failed_at is not None
        until = time.monotonic() + evidence_window_s(rank)
        if attempt.evidence_until is None or until < attempt.evidence_until:
            attempt.evidence_until = until

    def _on_nursery_gone(self) -> None:
        """The nursery died; the kernel kills its ranks with it."""
        self._selector.unregister(self.nursery.link.fileno())
        self.nursery.process.kill()
        ended = ExitStatus(signal=-min(self.nursery.process.wait(), 0) or None)
        attempt = self._attempt
        if attempt is None and self._restart_at is not None:
            return  # nothing runs: the restart that is due makes another one
        if attempt is None:
            self._on_import_ended(ended)
            return
        for rank in attempt.ranks:
            self._on_reports(rank)
        attempt.signal(signal.SIGKILL)
        sweep(self.nursery.tag)
        for rank in attempt.ranks:
            rank.status, rank.failed_at = rank.status or ExitStatus(), rank.failed_at or time.monotonic()
        facts = {"signal": ended.signal_name}
        self._conclude(
            attempt, Diagnosis(kind="nursery-died", code="diagnose/nursery-died", facts=facts, is_transient=True)
        )

    def _on_import_ended(self, ended: ExitStatus) -> None:
        """The nursery is gone before it was ready: what it imports is at fault only where it has ended by itself."""
        if self._stop is not None:
            return
        diagnosis = explain_nursery(replace(ended, is_oom_kill=self.nursery.saw_oom_kill()), self.nursery.output())
        if diagnosis is None:
            self._conclude_import(self.nursery.output())
            return
        can_restart = self._budget.spend(self._steps, self._committed) and diagnosis.is_transient
        incident = Incident(
            attempt=self._number,
            rank=None,
            step=self._steps,
            diagnosis=diagnosis,
            status=ended,
            traceback=self.nursery.output().rstrip(),
            action="restart" if can_restart else "stop",
        )
        self._tell.incident(incident)
        if can_restart:
            self._restart_later()
        else:
            code, why = (
                (93, "launch/no-progress") if diagnosis.is_transient and self._budget.limit else (5, "launch/failed")
            )
            facts = {"restarts": self._budget.wasted, "rank": "n/a", "step": self._steps}
            self._end("failed", 93 if diagnosis.kind == "illegal-instruction" else code, why, facts, incident)

    # --- what passes ---

    def _on_time(self) -> None:
        now = time.monotonic()
        attempt = self._attempt
        if self._outcome is not None:
            return
        if attempt is None:
            if self._restart_at is not None and now >= self._restart_at:
                self._restart_at = None
                self._restart()
            elif self._stop is not None:
                self._end("interrupted", self._stop.exit_code, self._why_stopped(), {"step": self._steps})
        elif not attempt.is_whole:
            if self._is_grace_over(now):
                self.nursery.process.kill()
        elif attempt.is_over():
            self._conclude(attempt)
        elif attempt.killed_at is not None:
            self._give_up_on_the_undead(attempt, now)
        elif self._is_grace_over(now) or (attempt.evidence_until is not None and now >= attempt.evidence_until):
            self._kill(attempt, now)
        if now >= self._next_tick:
            self._next_tick = now + _TICK_S
            self._tick(now)

    def _why_stopped(self) -> str:
        """Return the words for a stop while no rank lives; a foreign line has nothing that could be resumed."""
        if self._job.foreign is not None:
            return "launch/foreign-stopped" if self._attempts else "launch/foreign-stopped-early"
        return "launch/stopped-now" if self._attempts else "launch/interrupted-early"

    def _is_grace_over(self, now: float) -> bool:
        return self._stop is not None and (self._stop.is_now or now >= self._stop.at + self._job.grace_s)

    def _timeout_s(self) -> float:
        now = time.monotonic()
        marks = [self._next_tick] if self._restart_at is None else [self._next_tick, self._restart_at]
        if self._attempt is not None and self._attempt.evidence_until is not None and self._attempt.killed_at is None:
            marks.append(self._attempt.evidence_until)
        return max(0.0, min(marks) - now)

    def _tick(self, now: float) -> None:
        if now >= self._next_renewal:
            self._next_renewal = now + RENEW_S
            self._lease.renew()
        if self._attempt is None:
            return
        self._attempt.oom_kills.look(now)
        beats = self._beats(self._attempt)
        self._tell.beats(beats)
        if self._hangs is not None:
            self._look_for_hang(self._attempt, self._hangs)
            return
        quiet_s = self._stall.look(beats, time.monotonic_ns())
        if quiet_s is not None:
            self._tell.emit("warning", code="launch/quiet", facts={"seconds": round(quiet_s)})

    def _look_for_hang(self, attempt: Attempt, hangs: HangWatch) -> None:
        found = hangs.look(attempt)
        if found is None or attempt.evidence_until is not None or self._stop is not None:
            return
        assert self._job.foreign is not None
        policy = self._job.foreign.on_hang
        self._tell.emit("hang", attempt=attempt.number, policy=policy, **found.to_json())
        if policy != "wait":
            attempt.hang = found
            self._kill(attempt, time.monotonic())

    def _beats(self, attempt: Attempt) -> list[Beat | None]:
        return self._watch_ranks.beats(attempt)

    # --- what follows ---

    def _begin_attempt(self) -> None:
        self._number += 1
        self._attempts += 1
        port = self._port.renew() if self._job.foreign is not None else None
        self._watch_ranks.begin(self._number)
        self._attempt = fork_attempt(self._job, self._number, self.nursery, self._targets, port)
        self._lease.record(self._number)

    def _ask_to_stop(self, signum: int) -> None:
        stop = add_signal(self._stop, signum, time.monotonic())
        if stop is None:
            return
        self._stop = stop
        self._tell.emit("stop_requested", why=signal.Signals(signum).name, now=stop.is_now)
        if self._attempt is not None and self._attempt.is_whole and not stop.is_now:
            self._attempt.signal(self._polite_signal(stop))

    def _polite_signal(self, stop: Stop) -> int:
        """Return what asks a rank to stop: our own engine knows SIGTERM, a foreign script what was sent to us."""
        is_foreign = self._job.foreign is not None and stop.signum in (signal.SIGINT, signal.SIGTERM)
        return stop.signum if is_foreign else signal.SIGTERM

    def _kill(self, attempt: Attempt, now: float) -> None:
        attempt.killed_at = now
        attempt.signal(signal.SIGKILL)
        # The nursery adopts orphans, so its descendants are all there is: loader workers, helpers, daemons.
        kill_all(without_cleaners(descendants(self.nursery.process.pid)))

    def _give_up_on_the_undead(self, attempt: Attempt, now: float) -> None:
        if attempt.killed_at is None or now < attempt.killed_at + _DEATH_S:
            return
        left = [rank.rank for rank in attempt.ranks if rank.status is None]
        for rank in attempt.ranks:
            rank.status = rank.status or ExitStatus()
        self._let_go(attempt)
        self._tell.attempt_ended(attempt, "unkillable")
        self._end("failed", 5, "launch/unkillable", {"ranks": ", ".join(map(str, left))})

    def _conclude(self, attempt: Attempt, found: Diagnosis | None = None) -> None:
        """Every rank has ended: the run is over, or another attempt begins."""
        for rank in attempt.ranks:
            rank.read_output(DRAIN_BYTES)
        if found is None:
            kill_all(without_cleaners(descendants(self.nursery.process.pid)))
        reach = read_reach(attempt, self._beats(attempt), self._committed)
        self._steps = reach.steps
        verdict = self._judge(attempt, reach, found)
        self._let_go(attempt)
        if verdict.state is not None:
            facts = {"grace": f"{self._job.grace_s:g}", **verdict.facts}
            self._end(verdict.state, verdict.exit_code, verdict.why, facts, verdict.incident)
        else:
            # New ranks are ordered first; the history, which waits for the disk, is written while they are forked.
            self._failed_at = min(
                (rank.failed_at for rank in attempt.ranks if rank.failed_at is not None), default=None
            )
            self._restart_later()
        self._tell.attempt_ended(attempt, verdict.how, verdict.incident)

    def _judge(self, attempt: Attempt, reach: Reach, found: Diagnosis | None) -> Verdict:
        if self._job.foreign is None:
            return judge(attempt, reach, stop=self._stop, budget=self._budget, found=found)
        assert isinstance(self._watch_ranks, ForeignWatch)
        scene = Scene(job=self._job, attempt=attempt, reach=reach, watch=self._watch_ranks)
        return judge_foreign(scene, stop=self._stop, budget=self._budget, found=found)

    def _conclude_import(self, traceback: str) -> None:
        """The ranks' interpreter cannot be used: nothing was started, and nothing is tried again."""
        code = "launch/no-headway" if "No module named 'headway'" in traceback else "launch/import-failed"
        facts = {"python": self.nursery.python, "text": traceback.rstrip().rpartition("\n")[2]}
        incident = Incident(
            attempt=self._number,
            rank=None,
            step=self._steps,
            diagnosis=Diagnosis(kind="import-error", code=code, facts=facts, is_transient=False),
            status=ExitStatus(),
            traceback=traceback.rstrip(),
            action="stop",
        )
        self._tell.incident(incident)
        self._end("failed", 5, code, facts, incident)

    def _restart_later(self) -> None:
        """Start again at once; a foreign program that has just gained nothing waits, each time twice as long."""
        wait_s = self._budget.wait_s() if self._job.foreign is not None else 0.0
        if wait_s:
            self._restart_at = time.monotonic() + wait_s
        else:
            self._restart()

    def _restart(self) -> None:
        if self.nursery.is_ready and self.nursery.process.poll() is None:
            self._begin_attempt()
            return
        self.nursery = self.nursery.renew()
        self._watch(self.nursery.link.fileno(), _NEXT, self._on_nursery)

    def _let_go(self, attempt: Attempt) -> None:
        """Close an attempt's files and stop listening to it."""
        for rank in attempt.ranks:
            for fd in (rank.pidfd, rank.report_fd, rank.output_fd):
                if fd is not None and fd in self._selector.get_map():
                    self._selector.unregister(fd)
        attempt.close()
        self._attempt = None

    def _end(
        self, state: State, exit_code: int, why: str, facts: Mapping[str, object], incident: Incident | None = None
    ) -> None:
        self._outcome = Outcome(
            state=state,
            exit_code=exit_code,
            steps=self._steps,
            attempts=self._attempts,
            why=why,
            facts={"run": self._run.name, **facts},
            incident=incident,
        )

    def _watch(self, fd: int, order: int, call: Callable[[], None]) -> None:
        self._selector.register(fd, selectors.EVENT_READ, (order, call))


def _numbers(history: list[Event], kind: str, fact: str) -> list[int]:
    return [event[fact] for event in history if event.get("kind") == kind and isinstance(event.get(fact), int)]
