"""A rank of our own engine: it writes a heartbeat, reports its errors, and saves when it is asked."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from typing import Final

from headway.checkpoint.memory_file import make_file
from headway.diagnosis import Hang
from headway.launch.attempt import Attempt, RankProcess
from headway.launch.foreign.hangs import StoppedWatch
from headway.launch.history import History
from headway.launch.job import Job, Training, read_job
from headway.launch.lost_ranks import LostRanks, OtherRanks, with_all, write_ranks
from headway.launch.own_hangs import OwnHangWatch
from headway.launch.program import RankOrder, Seat
from headway.launch.restarts import RestartBudget, StallWatch
from headway.launch.shrink import OUT_OF_MEMORY, shrink, write_smaller
from headway.launch.verdict import Scene, Stop, Verdict, judge
from headway.messages import language
from headway.telemetry import Beat, RunDir, read_beat

_STOPPED_S: Final = 3.0
"""A rank that a signal has stopped is named in this time."""


class OwnEngine:
    """Ranks that train a recipe."""

    log_bytes = None
    is_stopping = False

    def __init__(self, run: RunDir, job: Job, history: History, *, can_lose_ranks: bool = False) -> None:
        self._run, self._job, self._history = run, job, history
        self._memory = self._make_memory()
        self._older: tuple[int, int] | None = None
        """The memory that was kept by another number of ranks, and how many they were, until the new one has a step."""
        self._reached, self._is_kept = 0, False
        self._lost = LostRanks(run, job) if can_lose_ranks and isinstance(job.program, Training) else None
        # Short: our own ranks never stop themselves, and little is lost where one is restarted from memory.
        stopped_s = min(_STOPPED_S, job.hang_s) if self._memory is not None else job.hang_s
        self._stopped = StoppedWatch(replace(job, hang_s=stopped_s))
        self._hangs, self._stall = OwnHangWatch(run, job.hang_s), StallWatch()

    def begin(self, attempt: int) -> None:
        """Rank 0 is handed a listening socket; heartbeats carry the number of their attempt."""

    def order(self, seat: Seat) -> RankOrder:
        """Return what the rank in this seat is started with."""
        env = seat.names()
        if self._job.threads is not None:
            env["OMP_NUM_THREADS"] = str(self._job.threads)
        if self._job.devices is not None:
            # Indexes are the driver's (PCI order), so CUDA must count the same way.
            env |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(self._job.devices)}
        if self._job.devices:
            env |= record_collectives(self._run, seat)
            if not {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"} & os.environ.keys():
                env["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"  # little is lost between tensors of other sizes
        # It has a part of each rank's state, so it is of no use where some of them are on other nodes.
        is_whole = seat.num_nodes == 1 and seat.world_size == self._job.world_size
        files = {"memory_fd": self._memory} if self._memory is not None and is_whole else {}
        call = rank_call(self._run, seat)
        if files and self._older is not None:
            files["memory_before_fd"], call["memory_before_ranks"] = self._older
        return RankOrder(call=call, env=env, files=files)

    def lines(self, rank: int, lines: list[bytes]) -> None:
        """Lines tell nothing that the heartbeat does not, once there are steps."""
        self._stall.hear(time.monotonic_ns())

    def beats(self, attempt: Attempt) -> list[Beat | None]:
        """Return every rank's heartbeat."""
        beats = [read_beat(self._run.heartbeat(rank.rank)) for rank in attempt.ranks]
        return [beat if beat is not None and beat.attempt == attempt.number else None for beat in beats]

    def look(self, attempt: Attempt, beats: list[Beat | None]) -> Hang | None:
        """Return ranks that hang, by a signal or by themselves; warn of heartbeats that do not move."""
        quiet_s = self._stall.look(beats, time.monotonic_ns())
        if quiet_s is not None:
            self._history.emit("warning", code="launch/quiet", facts={"seconds": round(quiet_s)})
        stopped = self._stopped.look(attempt, beats)
        if stopped is not None or attempt.seats[0].num_nodes > 1:
            # One node alone cannot tell who of several keeps the others waiting: it sees its own stacks only.
            return stopped
        return self._hangs.look(attempt, beats)

    def tend(self, attempt: Attempt, beats: list[Beat | None]) -> None:
        """Let the ranks save and end when lost ones are to be tried again."""
        if self._lost is not None and self._lost.is_time(beats):
            self._lost.is_returning = True
            attempt.signal(signal.SIGTERM)

    def hear_end(self, rank: RankProcess, attempt: Attempt) -> None:
        """Its reports have said everything."""

    def ask_to_stop(self, attempt: Attempt, stop: Stop) -> None:
        """Every rank knows SIGTERM, whatever was sent to us: it saves at the end of the step."""
        attempt.signal(signal.SIGTERM)

    def remind(self, attempt: Attempt, now: float) -> None:
        """Every rank was asked itself."""

    def ask_to_save(self, attempt: Attempt, signum: int) -> None:
        """Ask rank 0: one rank's wish is all ranks' wish at the end of the step."""
        attempt.ranks[0].ask(signal.SIGUSR1)  # of several nodes it is the leader's, and nobody else is asked
        self._history.emit("save_requested", why=signal.Signals(signum).name)

    def waits(self, attempt: Attempt, stop: Stop | None, now: float) -> bool:
        """What a rank leaves behind is a loader or a helper of ours, which has nothing left to do."""
        return False

    def judge(self, scene: Scene) -> Verdict:
        """Decide by what the ranks have reported; a batch that was too large comes in smaller pieces next time."""
        verdict = judge(scene, is_hang_transient=self._job.on_hang == "restart")
        self._is_kept = self._is_kept or scene.reach.steps > self._reached
        if self._is_kept:
            self._drop_older()  # this memory has a newer step, or the disk has
        if self._lost is not None:
            is_returning = self._lost.is_returning
            fewer = self._lost.hear(scene, verdict)
            if fewer is not None and (verdict.state is None or verdict.exit_code in (5, 93)):
                return self._with_ranks(scene, verdict, fewer, "launch/ranks-fewer")
            if is_returning and scene.stop is None and verdict.how == "stopped":
                everyone = with_all(read_job(self._run))
                assert everyone is not None, "only lost ranks return"
                return self._with_ranks(scene, verdict, everyone, "launch/ranks-back")
        if verdict.incident is None or scene.stop is not None:
            return verdict
        if verdict.incident.diagnosis.kind not in OUT_OF_MEMORY:
            return verdict
        # Of several nodes the number may have changed since the start, and the file with it.
        smaller = shrink(read_job(self._run), verdict.incident.diagnosis.kind, attempt=scene.attempt.number)
        if smaller is None:
            return verdict
        write_smaller(self._run, smaller)
        self._job = replace(self._job, program=smaller.job.program)
        if self._lost is not None:
            self._lost.job = self._job
        incident = replace(verdict.incident, action="restart")
        return Verdict(how="failed", state=None, incident=incident, change="launch/batch-reduced", facts=smaller.facts)

    def _with_ranks(self, scene: Scene, verdict: Verdict, other: OtherRanks, code: str) -> Verdict:
        """Start again with another number of ranks."""
        write_ranks(self._run, other)
        before, self._job = self._job.world_size, replace(other.job, environment=self._job.environment)
        assert self._lost is not None
        self._lost.take(self._job)
        scene.budget.wasted = 0
        if self._memory is not None:
            if self._is_kept or self._older is None:
                self._drop_older()
                self._older = self._memory, before
            else:
                os.close(self._memory)  # nothing was kept in it
            self._memory = self._make_memory()
            self._reached, self._is_kept = scene.reach.steps, False
        incident = None if verdict.incident is None else replace(verdict.incident, action="restart")
        return Verdict(
            how=verdict.how,
            state=None,
            incident=incident,
            change=code,
            facts=other.facts,
            num_ranks=other.job.world_size,
        )

    def _drop_older(self) -> None:
        if self._older is not None:
            os.close(self._older[0])
            self._older = None

    def make_budget(self, committed: int | None) -> RestartBudget:
        """Return a budget of restarts in a row that gain nothing: a resumed run loses nothing by more of them."""
        return RestartBudget(self._job.restarts, committed)

    def wait_s(self, budget: RestartBudget) -> float:
        """Start again at once."""
        return 0.0

    def why_stopped(self, *, has_begun: bool) -> str:
        """Return the message code for a stop while no rank lives."""
        return "launch/stopped-now" if has_begun else "launch/interrupted-early"

    def close(self) -> None:
        """Let go of the memory; with the last rank it is gone."""
        if self._memory is not None:
            os.close(self._memory)
            self._memory = None
        self._drop_older()
        if self._lost is not None:
            self._lost.close()

    def _make_memory(self) -> int | None:
        """Return the memory in which ranks keep their last step; it is ours, so that it outlives all of them."""
        training = self._job.program
        if not isinstance(training, Training) or training.probe is not None:
            return None
        if not training.config.get("save", {}).get("in_memory", 0):
            return None
        try:
            return make_file(self._job.world_size)
        except OSError as err:  # `ulimit -f`, or a kernel without it: the run has its checkpoints
            self._history.emit("warning", code="launch/no-memory-file", facts={"why": err.strerror or str(err)})
            return None


def rank_call(run: RunDir, seat: Seat) -> dict[str, object]:
    """Return what the entry of any rank is called with."""
    return {
        "run_dir": str(run.root.absolute()),
        "rank": seat.rank,
        "local_rank": seat.local_rank,
        "world_size": seat.world_size,
        "attempt": seat.attempt,
        "master_address": seat.address,
        "master_port": seat.port,
        "lang": language(),
    }


def record_collectives(run: RunDir, seat: Seat) -> dict[str, str]:
    """Return what makes torch keep its last collectives and write them down when one of them times out.

    A variable that somebody has set is left as it is.
    """
    wanted = {
        "TORCH_FR_BUFFER_SIZE": "2000",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",  # the name before torch 2.9
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_FR_DUMP_TEMP_FILE": str(run.root / f"collectives-{seat.attempt}-"),
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(run.root / f"collectives-{seat.attempt}-"),
    }
    return {name: value for name, value in wanted.items() if name not in os.environ}
