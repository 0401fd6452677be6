"""The supervisor's loop: everything that can happen to a run arrives here as a readable file or a passed deadline."""

from __future__ import annotations

import math
import os
import select
import selectors
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from headway.checkpoint import mark_for
from headway.diagnosis import Diagnosis, ExitStatus, Hang
from headway.launch.attempt import DRAIN_BYTES, Attempt, OutputTargets, RankProcess, make_attempt, send_orders
from headway.launch.background import BackgroundWait, name_processes
from headway.launch.blame import evidence_window_s
from headway.launch.foreign.hangs import HangWatch, StoppedWatch
from headway.launch.foreign.line import LineProgram
from headway.launch.foreign.ports import PortHold, is_open_to_all
from headway.launch.foreign.verdict import Scene, judge_foreign
from headway.launch.history import Telling
from headway.launch.hook import hide_in_errors, read_error, remove_temps
from headway.launch.job import Job
from headway.launch.lease import RENEW_S, Lease
from headway.launch.listeners import SOFT, Process, is_reader, read_processes
from headway.launch.nursery import Nursery
from headway.launch.outcome import Incident, Outcome, State
from headway.launch.output import AppendFile, merge_lines
from headway.launch.own_engine import OwnEngine
from headway.launch.program import Program
from headway.launch.restarts import RestartBudget, StallWatch
from headway.launch.signals import POLITE_STOP, SignalInbox
from headway.launch.stopping import PoliteStop, pass_on, read_helpers
from headway.launch.terminal import leave_terminal
from headway.launch.verdict import Reach, Stop, Verdict, add_signal, explain_hang, explain_nursery, judge, read_reach
from headway.launch.watching import ForeignWatch, HeartbeatWatch, Watch
from headway.process import descendants, kill_all, send_signal, sweep, without_cleaners
from headway.redact import redact
from headway.telemetry import Beat, Event, RunDir, read_events

_TICK_S: Final = 0.1
_BEATS_S: Final = 1.0
_RANKS_A_TICK: Final = 64
"""Heartbeats read in a tick, in the mean: those of many ranks are read less often, down to once a second."""
_HEAR_S: Final = 0.2
"""Longest time for the nursery's answers before signals are looked at again."""
_STORE_S: Final = 1.0
_DEATH_S: Final = 10.0
"""A killed rank that is not gone by then hangs in the kernel."""
_FIRST, _NEXT, _LAST = 0, 1, 2


class Supervisor:
    """Starts attempts, watches their ranks, and decides what follows each end. One run, one thread, no sleeping."""

    def __init__(
        self, run: RunDir, job: Job, *, tell: Telling, nursery: Nursery, lease: Lease, inbox: SignalInbox
    ) -> None:
        self.nursery = nursery
        self.keeps_nursery = False
        """The caller forks the ranks of its next run from it too."""
        self._job, self._run = job, run
        self._program = make_program(run, job)
        self._tell, self._lease, self._inbox = tell, lease, inbox
        history = read_events(run.events)
        self._number = max(_numbers(history, "attempt_started", "attempt"), default=0)
        self._committed = max(_numbers(history, "checkpoint_committed", "step"), default=None)
        self._steps = self._committed or 0
        self._budget = RestartBudget(job.restarts, self._committed, is_total=job.foreign is not None)
        self._stall = StallWatch()
        self._port = PortHold()
        foreign = ForeignWatch(run) if job.foreign is not None else None
        self._watch_ranks: Watch = foreign or HeartbeatWatch(run)
        self._hangs = HangWatch(run, job, foreign) if foreign is not None else None
        self._stopped = StoppedWatch(job)
        self._restart_at: float | None = None
        self._attempts = 0
        self._attempt: Attempt | None = None
        self._stop: Stop | None = None
        self._asking: PoliteStop | None = None
        """How a foreign line is being asked to stop."""
        self._next_left_look = 0.0
        self._has_named_others = False
        # A program that meets at its own port: torch opens it on every interface.
        self._store_unseen = job.foreign is not None and job.foreign.is_distributed and job.world_size > 1
        self._next_store_look = 0.0
        self._left: dict[int, Process] = {}
        self._outcome: Outcome | None = None
        self._failed_at: float | None = None
        self._next_tick = self._next_renewal = self._next_beats = 0.0
        self._selector = selectors.DefaultSelector()
        self._targets = OutputTargets(
            merged=AppendFile(run.log, tell.gap, self._program.log_bytes),
            on_gap=tell.gap,
            on_lines=self._on_lines,
            on_bar=self._on_bar,
            log_bytes=self._program.log_bytes,
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
            if signum == signal.SIGHUP and leave_terminal(self._run):
                self._tell.emit("warning", code="launch/terminal-closed", facts={"run": self._run.name})
            if signum in SOFT:
                self._ask_to_save(signum)
            else:
                self._ask_to_stop(signum)

    def _on_nursery(self) -> None:
        """Take what the nursery has to say; a hundred ranks end at once, and time must not pass between each two."""
        link, until = self.nursery.link, time.monotonic() + _HEAR_S
        more = select.poll()  # not select(): with a thousand ranks the link of a later nursery has a number above 1,023
        more.register(link, select.POLLIN)
        while True:
            self._hear_nursery()
            is_over = self._outcome is not None or self.nursery.link is not link
            if is_over or link.fileno() not in self._selector.get_map() or time.monotonic() > until:
                return
            if not more.poll(0):
                return

    def _hear_nursery(self) -> None:
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
        self._go_on_starting(self._attempt)

    def _go_on_starting(self, attempt: Attempt) -> None:
        """Order the next ranks, or begin to watch when all are there."""
        send_orders(self._program, attempt, self.nursery)
        if not attempt.is_whole and all(rank.pid for rank in attempt.ranks):
            self._on_whole(attempt)

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
            if rank.report_fd >= 0:
                self._watch(rank.report_fd, _NEXT, partial(self._on_reports, rank))
                self._watch(rank.output_fd, _LAST, partial(self._on_output, rank))
        if self._stop is not None and self._stop.is_now:
            attempt.signal(signal.SIGKILL)
        elif self._stop is not None:
            self._pass_stop_on(attempt, self._stop)

    def _on_fork_failed(self, message: dict[str, Any]) -> None:
        assert self._attempt is not None
        rank = self._attempt.ranks[message["rank"]]
        rank.error = {"code": "diagnose/fork-failed", "facts": {"text": message["why"]}, "text": message["why"]}
        rank.status, rank.failed_at = ExitStatus(), time.monotonic()
        rank.pid = -1
        self._attempt.evidence_until = rank.failed_at
        self._go_on_starting(self._attempt)

    def _on_death(self, rank: RankProcess) -> None:
        """The kernel says it is dead; how, the nursery says a moment later."""
        assert rank.pidfd is not None
        self._selector.unregister(rank.pidfd)
        rank.seen_t = time.time()
        if rank.failed_at is None and rank.finished is None:
            rank.failed_at = time.monotonic()

    def _on_exited(self, message: dict[str, Any]) -> None:
        rank = self._attempt.by_pid(message["pid"]) if self._attempt else None
        if self._attempt is not None and self._attempt.background is not None:
            code = os.waitstatus_to_exitcode(message["status"])
            ended = ExitStatus(code=code) if code >= 0 else ExitStatus(signal=-code)
            self._attempt.background.hear_end(message["pid"], ended)
        if rank is None or self._attempt is None:
            return
        self._on_reports(rank)
        rank.read_output()
        code = os.waitstatus_to_exitcode(message["status"])
        if code >= 0:
            rank.status = ExitStatus(code=code, is_oom_kill=code > 0 and self._attempt.saw_oom_kill())
        else:
            # To ask the kernel costs more than all the rest here, and a stop of many ranks has its reason.
            is_asked = self._stop is not None and -code in (signal.SIGINT, signal.SIGTERM)
            rank.status = ExitStatus(signal=-code, is_oom_kill=not is_asked and self._attempt.saw_oom_kill())
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
        if is_over and rank.report_fd >= 0 and rank.report_fd in self._selector.get_map():
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
        elif event["kind"] == "training_started" and isinstance(event.get("step"), int):
            # What the ranks really went back to; a newer checkpoint may not have passed.
            self._committed = event["step"] or None
        elif event["kind"] == "checkpoint_failed":
            mark_for(self._run.checkpoints.absolute(), event)
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
            if not self._waits_for_others(attempt, now):
                self._conclude(attempt)
        elif attempt.killed_at is not None:
            self._give_up_on_the_undead(attempt, now)
        elif self._is_grace_over(now) or (self._hears_evidence(attempt) and now >= (attempt.evidence_until or 0.0)):
            self._kill(attempt, now)
        if now >= self._next_tick:
            self._next_tick = now + _TICK_S
            self._tick(now)

    def _hears_evidence(self, attempt: Attempt) -> bool:
        """Say whether ranks are ended soon after a failure; while a foreign line stops, one may still save."""
        return attempt.evidence_until is not None and (self._asking is None or attempt.killed_at is not None)

    def _waits_for_others(self, attempt: Attempt, now: float) -> bool:
        """Say whether processes that the ranks of a foreign line have left behind are still waited for."""
        if self._job.foreign is None or attempt.killed_at is not None:
            return False
        if self._stop is not None and self._is_grace_over(now):
            self._kill(attempt, now)
            return False
        if self._stop is None and not all(rank.has_finished() for rank in attempt.ranks):
            return False
        if now >= self._next_left_look:
            self._next_left_look = now + _TICK_S
            self._left = self._left_behind()
        if self._left:
            return self._stop is not None or self._wait_for_background(attempt, now)
        self._take_background_end(attempt)
        return False

    def _left_behind(self) -> dict[int, Process]:
        """Return the living processes below the nursery, those apart that only clean up or work for a dead one."""
        tree = read_processes(without_cleaners(descendants(self.nursery.process.pid)))
        helpers = {own for own, _ in read_helpers(self._run.root)}
        return {pid: one for pid, one in tree.items() if one.own_pid not in helpers and not is_reader(one)}

    def _wait_for_background(self, attempt: Attempt, now: float) -> bool:
        if attempt.background is None:
            steps = max((beat.step for beat in self._beats(attempt) if beat is not None), default=0)
            assert self._job.foreign is not None
            attempt.background = BackgroundWait(has_trained=steps > 0 and self._job.foreign.must_train)
            self._tell.emit("warning", code="launch/background", facts={"processes": name_processes(self._left)})
        assert isinstance(self._watch_ranks, ForeignWatch)
        pages = [self._watch_ranks.page(rank) for rank in self._run.ranks()]
        what = attempt.background.look(self._left, [page.pid for page in pages if page is not None], now)
        if what == "ask":
            facts = {"processes": name_processes(self._left)}
            self._tell.emit("warning", code="launch/background-ended", facts=facts)
        return what != "over"

    def _take_background_end(self, attempt: Attempt) -> None:
        """Let a bad end in the background be the run's own."""
        if attempt.background is not None and attempt.background.status is not None and self._stop is None:
            rank = attempt.ranks[0]
            rank.status, rank.finished, rank.failed_at = attempt.background.status, None, time.monotonic()

    def _why_stopped(self) -> str:
        """Return the words for a stop while no rank lives; a foreign line has nothing that could be resumed."""
        if self._job.foreign is not None:
            return "launch/foreign-stopped" if self._attempts else "launch/foreign-stopped-early"
        return "launch/stopped-now" if self._attempts else "launch/interrupted-early"

    def _is_grace_over(self, now: float) -> bool:
        if self._stop is None or (
            self._attempt is not None and self._attempt.is_dead() and not self._attempt.is_over()
        ):
            return False
        return self._stop.is_now or now >= self._stop.at + self._job.grace_s

    def _timeout_s(self) -> float:
        now = time.monotonic()
        marks = [self._next_tick] if self._restart_at is None else [self._next_tick, self._restart_at]
        attempt = self._attempt
        if attempt is not None and attempt.evidence_until is not None and attempt.killed_at is None:
            marks += [attempt.evidence_until] if self._hears_evidence(attempt) else []
        return max(0.0, min(marks) - now)

    def _tick(self, now: float) -> None:
        if now >= self._next_renewal:
            self._next_renewal = now + RENEW_S
            self._lease.renew()
        if self._attempt is None:
            return
        if not self._attempt.is_whole:
            self._go_on_starting(self._attempt)
        if self._asking is not None and self._attempt.killed_at is None:
            self._asking.look(self._attempt, self.nursery.process.pid, now)
        self._attempt.oom_kills.look(now)
        if now < self._next_beats:
            return
        self._next_beats = now + min(_BEATS_S, _TICK_S * self._job.world_size / _RANKS_A_TICK)
        beats = self._beats(self._attempt)
        self._tell.beats(beats)
        if self._store_unseen and now >= self._next_store_look:
            self._next_store_look = now + _STORE_S
            self._look_at_store(self._attempt)
        if self._hangs is not None:
            self._act_on_hang(self._attempt, None if self._attempt.is_over() else self._hangs.look(self._attempt))
            return
        self._act_on_hang(self._attempt, self._stopped.look(self._attempt, beats))
        quiet_s = self._stall.look(beats, time.monotonic_ns())
        if quiet_s is not None:
            self._tell.emit("warning", code="launch/quiet", facts={"seconds": round(quiet_s)})

    def _look_at_store(self, attempt: Attempt) -> None:
        """Say once who can reach the place where the ranks meet."""
        is_open = is_open_to_all(attempt.port)
        self._store_unseen = is_open is None
        if is_open:
            self._tell.emit("warning", code="launch/store-open", facts={"port": attempt.port})

    def _act_on_hang(self, attempt: Attempt, found: Hang | None) -> None:
        if found is None or attempt.evidence_until is not None or self._stop is not None:
            return
        policy = self._job.on_hang
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
        self._next_left_look = 0.0
        self._watch_ranks.begin(self._number)
        self._attempt = make_attempt(self._run, self._number, self._job.world_size, self._targets, port)
        send_orders(self._program, self._attempt, self.nursery)
        self._lease.record(self._number)

    def _ask_to_stop(self, signum: int) -> None:
        is_command = signum == POLITE_STOP
        stop = add_signal(self._stop, signal.SIGINT if is_command else signum, time.monotonic())
        if stop is None:
            return
        self._stop = stop if self._stop is not None else replace(stop, is_command=is_command)
        why = "headway stop" if is_command else signal.Signals(signum).name
        self._tell.emit("stop_requested", why=why, now=stop.is_now)
        attempt = self._attempt
        if attempt is None or stop.is_now:
            return
        if attempt.is_whole:
            self._pass_stop_on(attempt, self._stop)
            return
        for rank in attempt.unsent:
            rank.never_start()
        attempt.unsent.clear()
        self._go_on_starting(attempt)

    def _pass_stop_on(self, attempt: Attempt, stop: Stop) -> None:
        """Ask the ranks to stop: our own engine knows SIGTERM, a foreign line hears what was sent to us."""
        if self._job.foreign is None:
            attempt.signal(signal.SIGTERM)
            return
        signum = None if stop.is_command else stop.signum
        self._asking = PoliteStop(signum, self._run.root, stop.at, self._job.grace_s)
        self._asking.begin(attempt, self.nursery.process.pid)
        self._name_the_others()

    def _ask_to_save(self, signum: int) -> None:
        """Pass on a signal that does not ask for the end; our own engine saves and trains on."""
        attempt, name = self._attempt, signal.Signals(signum).name
        if attempt is None or not attempt.is_whole or self._stop is not None:
            if signum != signal.SIGHUP and self._stop is None:
                self._tell.emit("warning", code="launch/signal-early", facts={"signal": name})
        elif self._job.foreign is None:
            # One rank's wish is all ranks' wish at the end of the step.
            attempt.ranks[0].ask(signal.SIGUSR1)
            self._tell.emit("save_requested", why=name)
        else:
            num = pass_on(attempt, self.nursery.process.pid, signum, self._run.root)
            if num or signum != signal.SIGHUP:
                code = "launch/signal-passed" if num else "launch/signal-unheard"
                self._tell.emit("warning", code=code, facts={"signal": name, "num": num})

    def _name_the_others(self) -> None:
        """Say once which processes are not ours to signal, as those of sudo are."""
        if self._has_named_others:
            return
        left = [pid for pid in descendants(self.nursery.process.pid) if not send_signal(pid, 0)]
        others = read_processes(left)
        if others:
            self._has_named_others = True
            pids = " ".join(map(str, sorted(others)))
            facts = {"processes": name_processes(others), "pids": pids}
            self._tell.emit("warning", code="launch/other-user", facts=facts)

    def _kill(self, attempt: Attempt, now: float) -> None:
        attempt.killed_at = now
        attempt.signal(signal.SIGKILL)
        self._name_the_others()
        # The nursery adopts orphans, so its descendants are all there is: loader workers, helpers, daemons.
        kill_all(without_cleaners(descendants(self.nursery.process.pid)))

    def _give_up_on_the_undead(self, attempt: Attempt, now: float) -> None:
        if attempt.killed_at is None or now < attempt.killed_at + _DEATH_S:
            return
        left = [rank.rank for rank in attempt.ranks if rank.status is None and rank.seen_t is None]
        if not left:
            return  # all are dead by the kernel's word; how a thousand of them ended takes its time to be told
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
            if attempt.hang is not None and found is None:
                found = explain_hang(attempt.hang, is_transient=self._job.on_hang == "restart")
            return judge(attempt, reach, stop=self._stop, budget=self._budget, found=found)
        assert isinstance(self._watch_ranks, ForeignWatch)
        scene = Scene(run=self._run, job=self._job, attempt=attempt, reach=reach, watch=self._watch_ranks)
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
                if fd is not None and fd >= 0 and fd in self._selector.get_map():
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


def make_program(run: RunDir, job: Job) -> Program:
    """Return what the ranks of a job are."""
    return OwnEngine(run, job) if job.foreign is None else LineProgram(run, job, job.foreign)
