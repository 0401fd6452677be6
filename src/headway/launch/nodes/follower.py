"""The supervisor of a further node: it starts ranks when the leader says so, tells what becomes of them, and ends them
when the leader says so or is gone. It decides nothing, so that two nodes never decide differently."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from headway.diagnosis import ExitStatus
from headway.launch.attempt import DRAIN_BYTES, Attempt, RankProcess, send_orders
from headway.launch.hearing import FIRST, NEXT, Hearing
from headway.launch.history import History
from headway.launch.job import Job
from headway.launch.listeners import SOFT
from headway.launch.nodes.link import Link, Message
from headway.launch.nodes.rendezvous import network_variables
from headway.launch.nursery import Nursery, start_nursery
from headway.launch.oom_kills import OomCount
from headway.launch.outcome import SilentObserver
from headway.launch.output import RankOutput
from headway.launch.program import Program, Seat
from headway.launch.run import make_program
from headway.launch.signals import SignalInbox
from headway.launch.verdict import Stop
from headway.messages import set_language
from headway.process import adopt_orphans, descendants, kill_all, sweep, without_cleaners
from headway.telemetry import Beat, Event, RunDir

_TICK_S: Final = 0.1
_BEATS_S: Final = 0.5
_END_S: Final = 10.0
"""A killed rank that is not gone by then hangs in the kernel; the leader is not kept waiting for it."""
_LAST_WORD_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Farewell:
    """How it ended for this node."""

    exit_code: int | None
    """None: the link is lost, and nobody has said how the run continues."""
    why: str = ""
    """Message code of the reason."""
    facts: Mapping[str, object] | None = None


class Follower:
    """Serves one leader over one link."""

    def __init__(self, link: Link, inbox: SignalInbox, nursery: Nursery | None = None) -> None:
        self.nursery = nursery
        """What was started for the same run over a link before; kept after this one."""
        self.index = 0
        """Of this node, once the leader has said it."""
        self._link, self._inbox = link, inbox
        self._farewell: Farewell | None = None
        self._program: Program | None = None
        self._hearing: Hearing | None = None
        self._attempt: Attempt | None = None
        self._next: Mapping[str, Any] | None = None
        """An attempt that is to begin once the one before is cleared up and the nursery is ready."""
        self._stop: Stop | None = None
        self._told: dict[int, str] = {}
        self._next_tick = self._next_beats = 0.0

    def serve(self) -> Farewell:
        """Follow until the leader says goodbye, or is gone; no rank lives then."""
        adopt_orphans()
        try:
            self._wait_for_run()
            while self._farewell is None:
                self._step()
        finally:
            self._clear_up()
            adopt_orphans(False)
        return self._farewell

    # --- before the run ---

    def _wait_for_run(self) -> None:
        """Import what the ranks need while the leader still plans."""
        while self._farewell is None and self._hearing is None:
            for message in self._link.receive():
                self._take(message)
            for signum in self._inbox.read():
                self._link.send("signal", signum=signum)
                if signum not in SOFT:
                    self._farewell = Farewell(exit_code=143 if signum == signal.SIGTERM else 130)
            self._link.tick(time.monotonic())
            if self._link.is_gone and self._farewell is None:
                self._farewell = Farewell(exit_code=None)
            time.sleep(0.01)

    def _prepare(self, facts: Mapping[str, Any]) -> None:
        wanted = str(facts["python"]), tuple(facts["preload"]), str(facts["entry"])
        if self.nursery is not None:
            is_same = (self.nursery.python, self.nursery.preload, self.nursery.entry) == wanted
            if is_same and self.nursery.process.poll() is None:
                return
            self.nursery.close()
        if not os.access(wanted[0], os.X_OK):
            self._refuse("nodes/no-python", python=wanted[0])
            return
        self.nursery = start_nursery(wanted[0], wanted[1], wanted[2], env=facts["env"])

    def _open_run(self, facts: Mapping[str, Any]) -> None:
        set_language(facts["lang"])
        run = RunDir(Path(facts["run_dir"]))
        try:
            os.chdir(facts["cwd"])
        except OSError as err:
            self._refuse("nodes/no-cwd", path=facts["cwd"], why=err.strerror or str(err))
            return
        if not _is_same_folder(run, facts["mark"]):
            self._refuse("nodes/no-shared-dir", path=run.root)
            return
        job = _job_of(facts)
        history = History(_ShippedEvents(self._link), SilentObserver())
        self._job, self._program = job, make_program(run, job, history)
        self._hearing = Hearing(run, self._program, history, None, merges=False)
        self._hearing.listen(self._link.fileno(), FIRST, self._on_link)
        self._hearing.listen(self._inbox.fd, FIRST, self._on_signals)
        self._hearing.listen(self._own_nursery.link.fileno(), NEXT, self._on_nursery)

    def _refuse(self, code: str, **facts: object) -> None:
        """Tell the leader what cannot be done here; the leader decides what follows."""
        told = {name: str(fact) for name, fact in facts.items()}
        self._link.send("refused", code=code, facts=told)

    @property
    def _own_nursery(self) -> Nursery:
        assert self.nursery is not None, "the leader prepares a node before it tells it of the run"
        return self.nursery

    # --- what arrives ---

    def _step(self) -> None:
        assert self._hearing is not None
        if self._link.is_full:  # what ranks print waits in their pipes, as it does for a slow disk
            time.sleep(0.005)
            self._link.flush()
            self._on_link()
        else:
            self._hearing.wait(max(0.0, self._next_tick - time.monotonic()))
        now = time.monotonic()
        if self._attempt is not None:
            self._tell(self._attempt)
            self._go_on(self._attempt, now)
        if now >= self._next_tick:
            self._next_tick = now + _TICK_S
            self._tick(now)
        if self._link.is_gone and self._farewell is None:
            self._farewell = Farewell(exit_code=None)

    def _on_link(self) -> None:
        for message in self._link.receive():
            self._take(message)

    def _on_signals(self) -> None:
        """A signal to one node is meant for the run: the leader decides."""
        for signum in self._inbox.read():
            if signum != signal.SIGHUP:
                self._link.send("signal", signum=signum)

    def _take(self, message: Message) -> None:
        facts, attempt = message.facts, self._attempt
        match message.kind:
            case "welcome":
                self.index = int(facts["index"])
            case "refused":
                self._farewell = Farewell(exit_code=3, why=str(facts["code"]), facts=facts["facts"])
            case "prepare":
                self._prepare(facts)
            case "run":
                self._open_run(facts)
            case "begin":
                self._next = facts
                self._begin_next()
            case "stop" if attempt is not None and self._program is not None:
                self._stop = Stop(signum=facts["signum"], at=time.monotonic(), is_command=facts["is_command"])
                self._program.ask_to_stop(attempt, self._stop)
            case "save" if attempt is not None:
                self._pass_on(attempt, facts["signum"])
            case "kill" | "end" if attempt is not None:
                self._kill(attempt)
            case "end":
                self._next = None
            case "bye":
                self._farewell = Farewell(
                    exit_code=int(facts["exit_code"]), why=facts.get("why", ""), facts=facts.get("facts", {})
                )

    def _pass_on(self, attempt: Attempt, signum: int) -> None:
        # A rank of our own engine hears of it from rank 0 at the end of the step; a foreign one only from us.
        if self._job.foreign is not None and self._program is not None:
            self._program.ask_to_save(attempt, signum)

    def _on_nursery(self) -> None:
        answer = self._own_nursery.receive()
        if answer is None:
            self._on_nursery_gone()
            return
        message, files = answer
        attempt = self._attempt
        match message["kind"]:
            case "ready":
                self._begin_next()
            case "failed":
                text = self._own_nursery.failure.rstrip().rpartition("\n")[2]
                self._refuse("nodes/import-failed", python=self._own_nursery.python, text=text)
            case "forked" if attempt is not None:
                self._on_forked(attempt, message, files[0])
            case "fork_failed" if attempt is not None:
                rank = attempt.by_rank(message["rank"])
                rank.error = {"code": "diagnose/fork-failed", "facts": {"text": message["why"]}, "text": message["why"]}
                rank.status, rank.failed_at, rank.pid = ExitStatus(), time.monotonic(), -1
                self._go_on_starting(attempt)
            case "exited" if attempt is not None and self._hearing is not None:
                is_stopping = self._stop is not None
                self._hearing.hear_exit(attempt, message["pid"], message["status"], is_stopping=is_stopping)

    def _on_forked(self, attempt: Attempt, message: Mapping[str, Any], pidfd: int) -> None:
        rank = attempt.by_rank(message["rank"])
        rank.pid, rank.pidfd = message["pid"], pidfd
        self._link.send("forked", attempt=attempt.number, rank=rank.rank, pid=rank.pid)
        if attempt.killed_at is not None:
            rank.signal(signal.SIGKILL)
        self._go_on_starting(attempt)

    def _go_on_starting(self, attempt: Attempt) -> None:
        assert self._program is not None and self._hearing is not None
        send_orders(self._program, attempt, self._own_nursery)
        if not attempt.is_whole and all(rank.pid for rank in attempt.ranks):
            attempt.is_whole = True
            self._hearing.begin(attempt)

    def _on_nursery_gone(self) -> None:
        """It died, and its ranks with it; another one is started for what follows."""
        nursery, attempt = self._own_nursery, self._attempt
        assert self._hearing is not None
        self._hearing.forget(nursery.link.fileno())
        nursery.process.kill()
        ended = ExitStatus(signal=-min(nursery.process.wait(), 0) or None)
        sweep(nursery.tag)
        if attempt is None and not nursery.is_ready:
            return  # what it imports is at fault; the leader knows
        for rank in attempt.ranks if attempt is not None else ():
            if rank.status is None:
                facts = {"signal": ended.signal_name}
                rank.error = {"code": "diagnose/nursery-died", "facts": facts, "text": "", "is_transient": True}
                rank.status, rank.failed_at, rank.pid = ExitStatus(), time.monotonic(), rank.pid or -1
        self.nursery = nursery.renew()
        self._hearing.listen(self.nursery.link.fileno(), NEXT, self._on_nursery)

    # --- an attempt ---

    def _begin_next(self) -> None:
        facts, nursery = self._next, self.nursery
        if facts is None or self._attempt is not None or nursery is None or not nursery.is_ready:
            return
        assert self._program is not None
        self._next, self._stop, self._told = None, None, {}
        network = network_variables(self._link.address)
        seats = tuple(Seat(**{**seat, "network": network}) for seat in facts["seats"])
        number, began = int(facts["attempt"]), time.monotonic()
        self._program.begin(number)
        ranks = [RankProcess(seat.rank, self._output(number, seat.rank), seat.node) for seat in seats]
        self._attempt = Attempt(
            number=number,
            port=seats[0].port,
            ranks=ranks,
            seats=seats,
            node=self.index,
            nursery=nursery.process.pid,
            began=began,
            oom_kills=OomCount(began),
            store_key=facts["store_key"],
            unsent=deque(ranks),
        )
        self._go_on_starting(self._attempt)

    def _output(self, attempt: int, rank: int) -> RankOutput:
        assert self._hearing is not None
        targets = self._hearing.targets
        return RankOutput(rank, _ShippedOutput(self._link, attempt, rank), None, targets.on_lines, targets.on_bar)

    def _tell(self, attempt: Attempt) -> None:
        """Tell the leader of failures and ends, in the order in which they were seen here."""
        now = time.monotonic()
        changed = [rank for rank in attempt.ranks if _news(rank) != self._told.get(rank.rank, "")]
        if changed and self._program is not None:
            self._send_beats(attempt, self._program)  # how far they came is part of how they ended
        for rank in sorted(changed, key=lambda rank: rank.failed_at or now):
            news = self._told[rank.rank] = _news(rank)
            facts: dict[str, Any] = {
                "attempt": attempt.number,
                "rank": rank.rank,
                "error": rank.error,
                "ago_s": now - (rank.failed_at or now),
                "status": None if rank.status is None else asdict(rank.status),
                "finished": rank.finished,
                "ours": rank.is_stopped_by_us,
            }
            self._link.send(news, b"", **facts)

    def _go_on(self, attempt: Attempt, now: float) -> None:
        assert self._program is not None
        is_stuck = attempt.killed_at is not None and now > attempt.killed_at + _END_S
        if not attempt.is_over() and not is_stuck:
            return
        if attempt.killed_at is None and self._program.waits(attempt, self._stop, now):
            return
        self._conclude(attempt)
        self._begin_next()

    def _conclude(self, attempt: Attempt) -> None:
        """Leave nothing of it here, then say so."""
        assert self._hearing is not None
        for rank in attempt.ranks:
            rank.read_output(DRAIN_BYTES)
        kill_all(without_cleaners(descendants(self._own_nursery.process.pid)))
        self._hearing.end(attempt)
        self._attempt = None
        self._link.send("over", attempt=attempt.number)

    def _kill(self, attempt: Attempt) -> None:
        if attempt.killed_at is None:
            attempt.killed_at = time.monotonic()
        for rank in attempt.unsent:
            rank.never_start()
        attempt.unsent.clear()
        attempt.signal(signal.SIGKILL)
        kill_all(without_cleaners(descendants(self._own_nursery.process.pid)))
        self._go_on_starting(attempt)

    def _tick(self, now: float) -> None:
        self._link.tick(now)
        attempt, program = self._attempt, self._program
        if attempt is None or program is None:
            return
        if not attempt.is_whole:
            self._go_on_starting(attempt)
        if self._stop is not None and attempt.killed_at is None:
            program.remind(attempt, now)
        attempt.oom_kills.look(now)
        if now < self._next_beats:
            return
        self._next_beats = now + _BEATS_S
        hang = program.look(attempt, self._send_beats(attempt, program))
        if hang is not None:
            self._link.send("hang", attempt=attempt.number, hang=asdict(hang))

    def _send_beats(self, attempt: Attempt, program: Program) -> list[Beat | None]:
        beats, clock = program.beats(attempt), time.monotonic_ns()
        # The age of a sign of life is sent, never its time: clocks of two machines do not compare.
        known = [
            (rank.rank, {**asdict(beat), "monotonic_ns": clock - beat.monotonic_ns})
            for rank, beat in zip(attempt.ranks, beats, strict=True)
            if beat is not None
        ]
        self._link.send("beats", attempt=attempt.number, beats=known)
        return beats

    def _clear_up(self) -> None:
        """End whatever lives; the leader hears of it where it still listens."""
        if self._attempt is not None:
            until = time.monotonic() + _END_S
            self._kill(self._attempt)
            while not self._attempt.is_over() and time.monotonic() < until and self._hearing is not None:
                self._hearing.wait(_TICK_S)
            self._conclude(self._attempt)
        if self._farewell is not None and self._farewell.exit_code is None:
            if self._hearing is not None:
                self._hearing.close()
            return  # the nursery is kept: the link may come back
        if self.nursery is not None:
            self.nursery.close()
        if self._program is not None:
            self._program.close()
        if self._hearing is not None:
            self._hearing.close()
        self._link.send("gone")
        self._link.drain(_LAST_WORD_S)


class _ShippedEvents:
    """Events of this node go to the leader, who writes the history."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def append(self, kind: str, **facts: object) -> Event:
        event = {"kind": kind, **facts}
        self._link.send("event", event=event)
        return event


class _ShippedOutput:
    """What a rank prints goes to the leader, who keeps it."""

    def __init__(self, link: Link, attempt: int, rank: int) -> None:
        self._link, self._attempt, self._rank = link, attempt, rank

    def write(self, data: bytes) -> None:
        self._link.send("out", data, attempt=self._attempt, rank=self._rank)

    def close(self) -> None:
        """There is no file."""


def _news(rank: RankProcess) -> str:
    return "ended" if rank.status is not None else "failed" if rank.error is not None else ""


def _is_same_folder(run: RunDir, mark: str) -> bool:
    """Say whether the leader's run directory is the one that we see: a folder of the same name proves nothing."""
    try:
        return (run.root / "ranks" / ".nodes").read_text(encoding="ascii") == mark
    except OSError:
        return False


def _job_of(facts: Mapping[str, Any]) -> Job:
    """Return the leader's job with the secrets that no file has, on this node's devices."""
    job = Job.from_json(facts["job"])
    if facts["devices"] is not None:
        job = replace(job, devices=tuple(facts["devices"]))
    if job.foreign is None:
        return job
    program = replace(job.foreign, argv=tuple(facts["argv"]))
    return replace(job, program=program, environment=facts["environment"])
