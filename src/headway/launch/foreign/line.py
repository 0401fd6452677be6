"""A rank of a line that is not ours: started with the names that its own launcher would have set, seen through its
lines and the hook, asked to stop by the signal it listens to, and judged by its exit code."""

from __future__ import annotations

import json
import math
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from headway.diagnosis import Diagnosis, Hang
from headway.launch.attempt import Attempt, RankProcess
from headway.launch.background import BackgroundWait, name_processes
from headway.launch.foreign.hangs import HangWatch
from headway.launch.foreign.knobs import read_knobs, turn
from headway.launch.foreign.ports import PortHold, is_open_to_all
from headway.launch.foreign.resume_words import add_words
from headway.launch.foreign.told import Told
from headway.launch.foreign.verdict import LineScene, judge_line
from headway.launch.foreign.watch import LineWatch
from headway.launch.history import History
from headway.launch.hook import hide_in_errors, hook_environment, read_error, remove_temps
from headway.launch.job import ForeignLine, Job, ranks_environ, write_job
from headway.launch.listeners import Process, is_reader, read_processes
from headway.launch.own_engine import rank_call
from headway.launch.program import RankOrder, Seat
from headway.launch.restarts import RestartBudget
from headway.launch.shrink import OUT_OF_MEMORY
from headway.launch.stopping import PoliteStop, name_other_users, pass_on, read_helpers
from headway.launch.verdict import Scene, Stop, Verdict
from headway.process import descendants, without_cleaners
from headway.redact import redact, remember_secrets
from headway.telemetry import Beat, RunDir

EXEC_ENTRY: Final = "headway.launch.foreign.exec:main"
COERCED: Final = "LC_CTYPE"
"""Set by Python in its own environment where the locale is C (PEP 538); a program of the user must not inherit it."""
_GIVEN: Final = Path("/proc/self/environ")
_LOG_BYTES: Final = 64 << 20
_MOST_LINE_BYTES: Final = 64 << 10
"""Of a line that is sent whole: half of a packet to the nursery."""
_STORE_S: Final = 1.0
_LEFT_S: Final = 0.1


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

    def __init__(self, run: RunDir, job: Job, line: ForeignLine, history: History) -> None:
        self._run, self._job, self._line, self._history = run, job, line, history
        self._environ = ranks_environ(job)
        remember_secrets(self._environ)
        self._told = Told(history, stops_at_nan=line.on_nan == "stop")
        self._watch, self._port = LineWatch(run, self._told), PortHold()
        self._hangs = HangWatch(run, job, line, self._watch)
        self._words = self._make_words(line)
        self._turned: dict[str, str] = {}
        self._resumed: dict[str, str] = {}
        """Variables of an attempt that continues."""
        self._begun = time.time()
        self._asking: PoliteStop | None = None
        self._left: dict[int, Process] = {}
        self._next_left_look = self._next_store_look = 0.0
        # A program that meets at its own port: torch opens it on every interface.
        self._store_unseen = line.is_distributed and job.world_size > 1

    @property
    def is_stopping(self) -> bool:
        """One rank may still save after another has failed."""
        return self._asking is not None

    def begin(self, attempt: int) -> int:
        """Return a port that nobody else takes by chance: the program opens it itself."""
        self._next_left_look = 0.0
        self._watch.begin(attempt)
        if attempt > 1:
            self._continue()
        return self._port.renew()

    def _continue(self) -> None:
        """Let a line that starts again continue, where the user has said how; otherwise say that it could."""
        asked, line = self._line.resume_with, self._line
        since, own = self._begun, self._run.root
        found = add_words(asked or "{latest}", line.argv, Path(line.cwd), since, not_in=own)
        if asked and found is not None:
            self._history.emit("warning", code="launch/resume-words", facts={"place": found.place or asked})
            line, self._resumed = replace(line, argv=found.argv), found.env
            if len(line.argv) > len(self._line.argv):
                write_job(self._run, replace(self._job, program=line))
        elif asked:
            self._resumed = {}
            self._history.emit("warning", code="launch/resume-nothing", facts={"folder": line.cwd})
        elif found is not None and not self._history.has_warned("launch/resume-possible"):
            self._history.emit("warning", code="launch/resume-possible", facts={"place": found.place})
        self._words = self._make_words(line)

    def order(self, seat: Seat) -> RankOrder:
        """Return what the rank in this seat is started with."""
        call = {**rank_call(self._run, seat), **self._words}
        if self._line.spans_nodes:  # a launcher per node, which makes the ranks
            call["place"] = {"node": seat.node, "address": seat.address, "port": seat.port}
        return RankOrder(call=call, env=self._env(seat))

    def _make_words(self, line: ForeignLine) -> dict[str, Any]:
        """What a rank executes: it needs no file, so that a directory that goes away at its start does not end it.

        A line too long for a packet is read from job.json, but for the words that job.json may not hold.
        """
        whole = {"argv": list(line.argv), "cwd": line.cwd, "has_macros": line.has_macros}
        if len(json.dumps(whole)) < _MOST_LINE_BYTES:
            return whole
        written = zip(line.argv, line.to_json()["argv"], strict=True)
        return {"hidden": {str(at): word for at, (word, shown) in enumerate(written) if word != shown}}

    def _env(self, seat: Seat) -> dict[str, str]:
        line, devices = self._line, self._job.devices
        found = {"HEADWAY_RANK": str(seat.rank)} if line.mode == "native" else {}
        found |= seat.network if line.spans_nodes else {}
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
        found |= self._turned | self._resumed
        return found | (hook_environment(self._run.root, seat.attempt, self._environ) if line.has_hook else {})

    def _elastic(self, seat: Seat) -> dict[str, str]:
        """Return what torchrun adds; its agent's store apart, for rank 0 opens a fresh one in every attempt."""
        return {
            "GROUP_RANK": str(seat.node),
            "GROUP_WORLD_SIZE": str(seat.num_nodes),
            "ROLE_RANK": str(seat.rank),
            "ROLE_WORLD_SIZE": str(seat.world_size),
            "TORCHELASTIC_RESTART_COUNT": str(seat.attempt - 1),
            "TORCHELASTIC_MAX_RESTARTS": str(self._job.restarts),
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": self._environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
            "TORCHELASTIC_RUN_ID": self._line.run_id,
            "ROLE_NAME": self._line.role,
        }

    def lines(self, rank: int, lines: list[bytes]) -> None:
        """Look for progress in them."""
        self._watch.lines(rank, lines)

    def beats(self, attempt: Attempt) -> list[Beat | None]:
        """Return where every rank is, from whatever it lets us see."""
        return self._watch.beats(attempt)

    def look(self, attempt: Attempt, beats: list[Beat | None]) -> Hang | None:
        """Return ranks that hang; say once who can reach the place where the ranks meet."""
        now = time.monotonic()
        if self._store_unseen and attempt.ranks[0].rank == 0 and now >= self._next_store_look:
            self._next_store_look = now + _STORE_S
            is_open = is_open_to_all(attempt.port)
            self._store_unseen = is_open is None
            if is_open:
                self._history.emit("warning", code="launch/store-open", facts={"port": attempt.port})
        self._end_of_nan(attempt, now)
        return None if attempt.is_over() else self._hangs.look(attempt)

    def tend(self, attempt: Attempt, beats: list[Beat | None]) -> None:
        """Nothing is due: what a script does is its own affair."""

    def hear_end(self, rank: RankProcess, attempt: Attempt) -> None:
        """It reports nothing: exit code 0 is its word that it is done, the hook has kept its exception."""
        assert rank.status is not None
        if rank.status.code == 0:
            beat = next(beat for one, beat in zip(attempt.ranks, self.beats(attempt), strict=True) if one is rank)
            rank.finished = {"state": "done", "step": beat.step if beat is not None else 0}
            rank.ended_at = time.monotonic()
            return
        told = read_error(self._run.rank(rank.rank), attempt.number)
        if told is not None and told.get("pid") == rank.pid and rank.error is None:
            rank.error = told
            # The same clock as ours, and earlier than the death: a process may take long to leave after its exception.
            rank.failed_at = min(rank.failed_at or math.inf, told["monotonic_ns"] / 1e9)

    def _end_of_nan(self, attempt: Attempt, now: float) -> None:
        """End a training whose loss is not finite any more, where the user wants that; it may still save."""
        if self._line.on_nan == "stop" and self._told.not_finite and attempt.evidence_until is None:
            attempt.evidence_until = now + self._job.grace_s
            attempt.signal(signal.SIGTERM)

    def ask_to_stop(self, attempt: Attempt, stop: Stop) -> None:
        """Let it hear what was sent to us; after `headway stop` whatever signal it answers."""
        signum = None if stop.is_command else stop.signum
        self._asking = PoliteStop(signum, self._run.root, stop.at, self._job.grace_s)
        self._asking.begin(attempt, attempt.nursery)
        name_other_users(attempt.nursery, self._history)

    def remind(self, attempt: Attempt, now: float) -> None:
        """Ask those whose parent has gone without passing it on, and in the end all others."""
        if self._asking is not None:
            self._asking.look(attempt, attempt.nursery, now)

    def ask_to_save(self, attempt: Attempt, signum: int) -> None:
        """Hand the signal to all who listen to it."""
        num = pass_on(attempt, attempt.nursery, signum, self._run.root)
        if num or signum != signal.SIGHUP:
            code = "launch/signal-passed" if num else "launch/signal-unheard"
            facts = {"signal": signal.Signals(signum).name, "num": num}
            self._history.emit("warning", code=code, facts=facts)

    def waits(self, attempt: Attempt, stop: Stop | None, now: float) -> bool:
        """Wait for what the ranks have left behind: after a stop as long as it saves, else as long as it works."""
        if stop is None and not all(rank.has_finished() for rank in attempt.ranks):
            return False
        if now >= self._next_left_look:
            self._next_left_look = now + _LEFT_S
            self._left = self._left_behind(attempt)
        if self._left:
            return stop is not None or self._wait_for_background(attempt, now)
        if attempt.background is not None and attempt.background.status is not None and stop is None:
            # A bad end in the background is the run's own.
            rank = attempt.ranks[0]
            rank.status, rank.finished, rank.failed_at = attempt.background.status, None, time.monotonic()
        return False

    def _left_behind(self, attempt: Attempt) -> dict[int, Process]:
        """Return the living processes below the nursery, those apart that only clean up or work for a dead one."""
        tree = read_processes(without_cleaners(descendants(attempt.nursery)))
        helpers = {own for own, _ in read_helpers(self._run.root)}
        return {pid: one for pid, one in tree.items() if one.own_pid not in helpers and not is_reader(one)}

    def _wait_for_background(self, attempt: Attempt, now: float) -> bool:
        if attempt.background is None:
            steps = max((beat.step for beat in self.beats(attempt) if beat is not None), default=0)
            attempt.background = BackgroundWait(has_trained=steps > 0 and self._line.must_train)
            self._warn_of_left("launch/background")
        pages = [self._watch.page(rank) for rank in self._run.ranks()]
        what = attempt.background.look(self._left, [page.pid for page in pages if page is not None], now)
        if what == "ask":
            self._warn_of_left("launch/background-ended")
        return what != "over"

    def _warn_of_left(self, code: str) -> None:
        self._history.emit("warning", code=code, facts={"processes": name_processes(self._left)})

    def judge(self, scene: Scene) -> Verdict:
        """Decide by exit codes, what the hook has kept, and the last lines."""
        job = self._job
        if self._line.on_nan == "stop" and self._told.not_finite and scene.stop is None:
            facts = {"text": self._told.not_finite}
            found = Diagnosis(kind="nan", code="diagnose/nan-loss", facts=facts, is_transient=False)
            scene = replace(scene, found=found)
        verdict = judge_line(LineScene(run=self._run, job=job, line=self._line, watch=self._watch, scene=scene))
        return verdict if scene.stop is not None else self._turn_knobs(verdict)

    def _turn_knobs(self, verdict: Verdict) -> Verdict:
        """Start again with the smaller batch that the user has named, where memory ran out."""
        if not self._line.oom_knob or verdict.incident is None or verdict.incident.diagnosis.kind not in OUT_OF_MEMORY:
            return verdict
        turned = turn(read_knobs(self._line.oom_knob), self._line.argv, {**self._environ, **self._turned})
        if turned is None:
            return verdict
        self._turned |= turned.env
        self._line = replace(self._line, argv=turned.argv)
        self._words = self._make_words(self._line)
        self._job = replace(self._job, program=self._line)
        write_job(self._run, self._job)
        changes = ", ".join(f"{name} {before} → {after}" for name, before, after in turned.changes)
        incident = replace(verdict.incident, action="restart")
        return Verdict(
            how="failed", state=None, incident=incident, change="launch/knobs-turned", facts={"changes": changes}
        )

    def make_budget(self, committed: int | None) -> RestartBudget:
        """Return a budget of all restarts, as launchers mean it."""
        return RestartBudget(self._job.restarts, committed, is_total=True)

    def wait_s(self, budget: RestartBudget) -> float:
        """Wait after an attempt that has gained nothing, each time twice as long."""
        return budget.wait_s()

    def why_stopped(self, *, has_begun: bool) -> str:
        """Return the message code for a stop while no rank lives; there is nothing that could be resumed."""
        return "launch/foreign-stopped" if has_begun else "launch/foreign-stopped-early"

    def close(self) -> None:
        """Write the last losses; remove what the hook has left, and hide secrets in the exceptions it has kept."""
        remove_temps(self._run.root)
        hide_in_errors(self._run.root, redact)
        self._watch.close()
        self._port.release()
