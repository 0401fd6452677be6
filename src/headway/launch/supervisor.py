"""The supervisor's loop: everything that can happen to a run arrives here as a readable file or a passed deadline."""

from __future__ import annotations

import select
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from headway.diagnosis import Diagnosis, ExitStatus, Hang
from headway.launch.attempt import DRAIN_BYTES, Attempt, make_attempt, send_orders
from headway.launch.hearing import FIRST, LAST, NEXT, Hearing
from headway.launch.history import History, read_past
from headway.launch.job import Job
from headway.launch.lease import RENEW_S, Lease
from headway.launch.listeners import SOFT
from headway.launch.mirror import MirrorProcess
from headway.launch.nursery import Nursery
from headway.launch.outcome import Incident, Outcome, State
from headway.launch.output import merge_lines
from headway.launch.program import Crew, Program
from headway.launch.sampler import DeviceSampler
from headway.launch.signals import POLITE_STOP, SignalInbox
from headway.launch.stopping import name_other_users
from headway.launch.terminal import leave_terminal
from headway.launch.verdict import Scene, Stop, Verdict, add_signal, judge_import, judge_nursery, read_reach
from headway.process import descendants, kill_all, sweep, without_cleaners
from headway.telemetry import RunDir

_TICK_S: Final = 0.1
"""Heartbeats and deadlines are looked at this often; deaths and signals wake the loop at once."""
_BEATS_S: Final = 1.0
_RANKS_A_TICK: Final = 64
"""Heartbeats read in a tick, in the mean: those of many ranks are read less often, down to once a second."""
_HEAR_S: Final = 0.2
"""Longest time for the nursery's answers before signals are looked at again."""
_DEATH_S: Final = 10.0
"""A killed rank that is not gone by then hangs in the kernel."""
_GPU_DEATH_S: Final = 60.0
"""The same with GPUs: the driver first waits for what runs on the card, then takes its memory back page by page."""


class Supervisor:
    """Starts attempts, watches their ranks, and decides what follows each end. One run, one thread, no sleeping."""

    def __init__(
        self,
        run: RunDir,
        job: Job,
        *,
        program: Program,
        crew: Crew,
        history: History,
        nursery: Nursery,
        lease: Lease,
        inbox: SignalInbox,
    ) -> None:
        self.nursery = nursery
        self.keeps_nursery = False
        """The caller forks the ranks of its next run from it too."""
        self.start_sampler: Callable[[], DeviceSampler | None] | None = None
        """Starts what reads the devices beside us; None: nobody does. Once the ranks are forked: before that, its own
        start would take the processor from theirs."""
        self.start_mirror: Callable[[], MirrorProcess | None] | None = None
        """The same of what copies checkpoints elsewhere."""
        self._sampler: DeviceSampler | None = None
        self._mirror: MirrorProcess | None = None
        self._job, self._run = job, run
        self._program, self._crew = program, crew
        self._history, self._lease, self._inbox = history, lease, inbox
        self._number, committed = read_past(run)
        self._hearing = Hearing(run, self._program, history, committed)
        self._steps = committed or 0
        self._budget = self._program.make_budget(committed)
        self._restart_at: float | None = None
        self._attempts = 0
        self._attempt: Attempt | None = None
        self._stop: Stop | None = None
        self._outcome: Outcome | None = None
        self._failed_at: float | None = None
        crew.attach(self, self._hearing, history)
        self._next_tick = self._next_renewal = self._next_beats = 0.0

    def supervise(self) -> Outcome:
        """Run the loop until the run has ended."""
        self._hearing.listen(self._inbox.fd, FIRST, self._on_signals)
        self._hearing.listen(self.nursery.link.fileno(), NEXT, self._on_nursery)
        if self.nursery.is_ready:  # it has served another run
            self._begin_attempt()
        while self._outcome is None:
            self._hearing.wait(self._timeout_s())
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
        self._program.close()
        if self._sampler is not None:
            self._hearing.forget(self._sampler.fd)
            for event in self._sampler.close():
                self._history.emit(**event)
            self._sampler = None
        if self._mirror is not None:
            self._hearing.forget(self._mirror.fd)
            is_done = self._outcome is not None and self._outcome.state == "done"
            self._mirror.close(self._history.emit, is_done=is_done, is_hurried=lambda: bool(self._inbox.read()))
            self._mirror = None
        self._crew.close(self._outcome)
        self._hearing.close()

    # --- what arrives ---

    def _on_signals(self) -> None:
        for signum in self._inbox.read():
            if signum == signal.SIGHUP and leave_terminal(self._run):
                self._history.emit("warning", code="launch/terminal-closed", facts={"run": self._run.name})
            self.on_signal(signum)

    def on_signal(self, signum: int) -> None:
        """Take a signal that was sent to us, or to a supervisor of another node."""
        if signum in SOFT:
            self._ask_to_save(signum)
        else:
            self._ask_to_stop(signum)

    def on_far_ranks(self) -> None:
        """Ranks of another node have been forked, or never will be."""
        if self._attempt is not None:
            self._go_on_starting(self._attempt)

    def on_far_hang(self, found: Hang) -> None:
        """Ranks of another node hang."""
        if self._attempt is not None:
            self._act_on_hang(self._attempt, found)

    def _sample(self, attempt: Attempt) -> None:
        """Tell the sampler who the ranks are; the first time it is started."""
        if self.start_sampler is not None:
            self._sampler, self.start_sampler = self.start_sampler(), None
            if self._sampler is not None:
                self._hearing.listen(self._sampler.fd, LAST, self._on_findings)
        if self._sampler is not None:
            self._sampler.watch([rank.pid for rank in attempt.ranks])
        if self.start_mirror is not None:
            self._mirror, self.start_mirror = self.start_mirror(), None
            if self._mirror is not None:
                self._hearing.listen(self._mirror.fd, LAST, self._on_mirror)

    def _on_findings(self) -> None:
        """Write down what the sampler has found; one that is gone is not missed."""
        assert self._sampler is not None
        found, is_over = self._sampler.hear()
        for event in found:
            self._history.emit(**event)
        if is_over:
            self._hearing.forget(self._sampler.fd)
            self._history.emit("warning", code="devices/sampler-gone", facts={})

    def _on_mirror(self) -> None:
        """Write down what was copied elsewhere, or why nothing is."""
        assert self._mirror is not None
        found, is_over = self._mirror.hear()
        for event in found:
            self._history.emit(**event)
        if is_over:
            self._hearing.forget(self._mirror.fd)
            self._mirror.close(self._history.emit, is_done=False, is_hurried=lambda: False)
            self._mirror = None
            self._history.emit("warning", code="mirror/gone", facts={"run": self._run.name})

    def _on_nursery(self) -> None:
        """Take what the nursery has to say; a hundred ranks end at once, and time must not pass between each two."""
        link, until = self.nursery.link, time.monotonic() + _HEAR_S
        more = select.poll()  # not select(): with a thousand ranks the link of a later nursery has a number above 1,023
        more.register(link, select.POLLIN)
        while True:
            self._hear_nursery()
            is_over = self._outcome is not None or self.nursery.link is not link
            if is_over or not self._hearing.is_listening(link.fileno()) or time.monotonic() > until:
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
                merge_lines(self._hearing.targets.merged, "nursery", self.nursery.output().encode().splitlines())
                self._begin_attempt()
            case "failed":
                self._conclude_import(self.nursery.failure)
            case "forked":
                self._on_forked(message, files[0])
            case "fork_failed":
                self._on_fork_failed(message)
            case "exited":
                if self._attempt is not None:
                    is_stopping = self._stop is not None
                    self._hearing.hear_exit(self._attempt, message["pid"], message["status"], is_stopping=is_stopping)

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
            "world_size": self._crew.world_size,
            "pids": [rank.pid if rank.far_pid is None else rank.far_pid for rank in attempt.ranks],
            "port": attempt.port,
            "resume_step": self._hearing.committed,
        }
        if attempt.seats[-1].node:
            facts["nodes"] = [seat.node for seat in attempt.seats]
        if self._failed_at is not None:
            facts["recover_ms"] = round((time.monotonic() - self._failed_at) * 1000, 1)
            self._failed_at = None
        attempt.is_whole = True
        self._history.emit("attempt_started", **facts)
        self._hearing.begin(attempt)
        self._sample(attempt)
        if self._stop is not None and self._stop.is_now:
            attempt.signal(signal.SIGKILL)
            self._crew.kill()
        elif self._stop is not None:
            self._program.ask_to_stop(attempt, self._stop)
            self._crew.ask_to_stop(self._stop)

    def _on_fork_failed(self, message: dict[str, Any]) -> None:
        assert self._attempt is not None
        rank = self._attempt.ranks[message["rank"]]
        rank.error = {"code": "diagnose/fork-failed", "facts": {"text": message["why"]}, "text": message["why"]}
        rank.status, rank.failed_at = ExitStatus(), time.monotonic()
        rank.pid = -1
        self._attempt.evidence_until = rank.failed_at
        self._go_on_starting(self._attempt)

    def _on_nursery_gone(self) -> None:
        """The nursery died; the kernel kills its ranks with it."""
        self._hearing.forget(self.nursery.link.fileno())
        self.nursery.process.kill()
        ended = ExitStatus(signal=-min(self.nursery.process.wait(), 0) or None)
        attempt = self._attempt
        if attempt is None and self._restart_at is not None:
            return  # nothing runs: the restart that is due makes another one
        if attempt is None:
            self._on_import_ended(ended)
            return
        for rank in attempt.ranks:
            self._hearing.hear_reports(rank, attempt)
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
        ended = replace(ended, is_oom_kill=self.nursery.saw_oom_kill())
        output, reach = self.nursery.output(), (self._steps, self._hearing.committed)
        verdict = judge_nursery(ended, output, number=self._number, reach=reach, budget=self._budget)
        self._conclude_import(output, verdict)

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
                why = self._program.why_stopped(has_begun=self._attempts > 0)
                self._end("interrupted", self._stop.exit_code, why, {"step": self._steps})
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
        """Say whether ranks are ended soon after a failure; while a program stops, one may still save."""
        return attempt.evidence_until is not None and (not self._program.is_stopping or attempt.killed_at is not None)

    def _waits_for_others(self, attempt: Attempt, now: float) -> bool:
        """Say whether processes that the ranks have left behind are still waited for."""
        if attempt.killed_at is not None or not self._program.waits(attempt, self._stop, now):
            return False
        if self._is_grace_over(now):
            self._kill(attempt, now)
        return attempt.killed_at is None

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
        self._crew.tick(now)
        if self._attempt is None:
            return
        if not self._attempt.is_whole:
            self._go_on_starting(self._attempt)
        if self._stop is not None and self._attempt.killed_at is None:
            self._program.remind(self._attempt, now)
        self._attempt.oom_kills.look(now)
        if now < self._next_beats:
            return
        self._next_beats = now + min(_BEATS_S, _TICK_S * self._crew.world_size / _RANKS_A_TICK)
        beats = self._crew.beats(self._attempt, self._program.beats(self._attempt))
        self._history.beats(beats)
        self._act_on_hang(self._attempt, self._program.look(self._attempt, beats))
        if self._stop is None and self._attempt.evidence_until is None and self._attempt.killed_at is None:
            self._program.tend(self._attempt, beats)

    def _act_on_hang(self, attempt: Attempt, found: Hang | None) -> None:
        if found is None or attempt.evidence_until is not None or self._stop is not None:
            return
        policy = self._job.on_hang
        self._history.emit("hang", attempt=attempt.number, policy=policy, **found.to_json())
        if policy != "wait":
            attempt.hang = found
            self._kill(attempt, time.monotonic())

    # --- what follows ---

    def _begin_attempt(self) -> None:
        muster = self._crew.muster()
        if muster.is_over:
            self._end(muster.state, muster.exit_code, muster.why, muster.facts)
            return
        if not muster.is_ready:
            self._restart_at = time.monotonic() + _TICK_S
            return
        self._number += 1
        self._attempts += 1
        self._attempt = make_attempt(
            self._run,
            self._crew,
            self._number,
            nursery=self.nursery.process.pid,
            targets=self._hearing.targets,
            port=self._program.begin(self._number),
        )
        self._crew.begin(self._attempt)
        send_orders(self._program, self._attempt, self.nursery)
        self._lease.record(self._number)

    def _ask_to_stop(self, signum: int) -> None:
        is_command = signum == POLITE_STOP
        stop = add_signal(self._stop, signal.SIGINT if is_command else signum, time.monotonic())
        if stop is None:
            return
        self._stop = stop if self._stop is not None else replace(stop, is_command=is_command)
        why = "headway stop" if is_command else signal.Signals(signum).name
        self._history.emit("stop_requested", why=why, now=stop.is_now)
        attempt = self._attempt
        if attempt is None or stop.is_now:
            return
        if attempt.is_whole:
            self._program.ask_to_stop(attempt, self._stop)
            self._crew.ask_to_stop(self._stop)
            return
        for rank in attempt.unsent:
            rank.never_start()
        attempt.unsent.clear()
        self._go_on_starting(attempt)

    def _ask_to_save(self, signum: int) -> None:
        """Pass on a signal that does not ask for the end."""
        attempt, name = self._attempt, signal.Signals(signum).name
        if attempt is None or not attempt.is_whole or self._stop is not None:
            if signum != signal.SIGHUP and self._stop is None:
                self._history.emit("warning", code="launch/signal-early", facts={"signal": name})
        else:
            self._program.ask_to_save(attempt, signum)
            self._crew.ask_to_save(signum)

    def _kill(self, attempt: Attempt, now: float) -> None:
        attempt.killed_at = now
        # Ranks first, through their pidfds, which can mean no other process.
        attempt.signal(signal.SIGKILL)
        self._crew.kill()
        name_other_users(self.nursery.process.pid, self._history)
        # The nursery adopts orphans, so its descendants are all there is: loader workers, helpers, daemons.
        kill_all(without_cleaners(descendants(self.nursery.process.pid)))

    def _give_up_on_the_undead(self, attempt: Attempt, now: float) -> None:
        if attempt.killed_at is None or now < attempt.killed_at + _death_s(self._job):
            return
        left = [rank.rank for rank in attempt.ranks if rank.status is None and rank.seen_t is None]
        if not left:
            return  # all are dead by the kernel's word; how a thousand of them ended takes its time to be reported
        for rank in attempt.ranks:
            rank.status = rank.status or ExitStatus()
        self._hearing.end(attempt)
        self._attempt = None
        self._history.attempt_ended(attempt, "unkillable")
        self._end("failed", 5, "launch/unkillable", {"ranks": ", ".join(map(str, left))})

    def _conclude(self, attempt: Attempt, found: Diagnosis | None = None) -> None:
        """Every rank has ended: the run is over, or another attempt begins."""
        for rank in attempt.ranks:
            rank.read_output(DRAIN_BYTES)
        if found is None:
            kill_all(without_cleaners(descendants(self.nursery.process.pid)))
        beats = self._crew.beats(attempt, self._program.beats(attempt))
        reach = read_reach(attempt, beats, self._hearing.committed)
        self._steps = reach.steps
        self._hearing.reached = max(self._hearing.reached or 0, *reach.rank_steps)
        scene = Scene(attempt=attempt, reach=reach, stop=self._stop, budget=self._budget, found=found)
        verdict = self._crew.agree(self._program.judge(scene))
        self._crew.end(attempt)
        self._hearing.end(attempt)
        self._attempt = None
        if verdict.state is not None:
            facts = {"grace": f"{self._job.grace_s:g}", **verdict.facts}
            self._end(verdict.state, verdict.exit_code, verdict.why, facts, verdict.incident)
        else:
            if verdict.num_ranks is not None:
                self._crew.take_ranks(verdict.num_ranks)
            # New ranks are ordered first; the history, which waits for the disk, is written while they are forked.
            self._failed_at = min(
                (rank.failed_at for rank in attempt.ranks if rank.failed_at is not None), default=None
            )
            self._restart_later()
        self._history.attempt_ended(attempt, verdict.how, verdict.incident)
        if verdict.change:
            self._history.emit("warning", code=verdict.change, facts=dict(verdict.facts))

    def _conclude_import(self, output: str, verdict: Verdict | None = None) -> None:
        """No rank was started; without a verdict on the nursery itself, what it imports is at fault."""
        verdict = verdict or judge_import(output, self.nursery.python, number=self._number, steps=self._steps)
        assert verdict.incident is not None
        self._history.incident(verdict.incident)
        if verdict.state is None:
            self._restart_later()
        else:
            self._end(verdict.state, verdict.exit_code, verdict.why, verdict.facts, verdict.incident)

    def _restart_later(self) -> None:
        """Start again, at once where the program does not want to wait."""
        wait_s = self._program.wait_s(self._budget)
        if wait_s:
            self._restart_at = time.monotonic() + wait_s
        else:
            self._restart()

    def _restart(self) -> None:
        if self.nursery.is_ready and self.nursery.process.poll() is None:
            self._begin_attempt()
            return
        self.nursery = self.nursery.renew()
        self._hearing.listen(self.nursery.link.fileno(), NEXT, self._on_nursery)

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


def _death_s(job: Job) -> float:
    """Return how long a killed rank may take to be gone; a line whose devices are not known may have GPUs."""
    return _DEATH_S if job.devices == () else _GPU_DEATH_S
