"""Launch a run: take the lease, supervise, and leave nothing behind."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Final

from headway.errors import UsageError
from headway.launch.beside import start_bridges
from headway.launch.foreign.line import LineProgram
from headway.launch.history import History
from headway.launch.job import ForeignLine, Job, read_job
from headway.launch.lease import Lease
from headway.launch.mirror import MirrorProcess, mirror_of
from headway.launch.nursery import Nursery
from headway.launch.outcome import Observer, Outcome
from headway.launch.own_engine import OwnEngine
from headway.launch.program import Alone, Crew, Program
from headway.launch.sampler import DeviceSampler
from headway.launch.signals import SignalInbox
from headway.launch.supervisor import Supervisor
from headway.process import adopt_orphans
from headway.telemetry import EventLog, RunDir

_FILES_A_RANK: Final = 4
"""Its output, its reports, its own log file, its pidfd."""
_OTHER_FILES: Final = 200
_TORCH: Final = "headway.engine.rank:main"
"""Ranks of the MindSpore engine cannot share a batch unevenly."""


def launch_run(
    run: RunDir,
    *,
    observer: Observer,
    nursery: Nursery,
    events: EventLog | None = None,
    keeps_nursery: bool = False,
    job: Job | None = None,
    lease: Lease | None = None,
    crew: Crew | None = None,
) -> Outcome:
    """Supervise a run to its end and say how it ended.

    Call it in the main thread, the one that started the nursery; it ends the nursery too, unless the caller keeps it
    for a next run. `job` is the run's own with the secrets that its file leaves out; without it the file is read.
    `lease` is held by the caller already; without it the run's own is taken here, and either is let go of at the end.
    `crew` has the other nodes of the run; without it this is the only one.
    `events` is the log the caller has been writing; without it the run's own is opened. Restarts
    continue the attempt numbers of the run.

    Raises:
        UsageError: another supervisor holds the run.
    """
    job = job or read_job(run)
    # The inbox before the lease: whoever sees that we hold the run may signal us, and must be heard.
    with nullcontext() if keeps_nursery else nursery, _room_for(job, crew), SignalInbox() as inbox:
        if lease is None:
            lease = Lease(run, tag=nursery.tag)
        else:
            lease.tag = nursery.tag
            lease.record(attempt=0)
        log = events if events is not None else EventLog(run.events)
        # Should the nursery be killed, what its ranks had started comes to us and not to init.
        adopt_orphans()
        try:
            history = History(log, observer)
            supervisor = Supervisor(
                run,
                job,
                program=make_program(run, job, history, can_lose_ranks=crew is None and nursery.entry == _TORCH),
                crew=crew or Alone(job.world_size),
                history=history,
                nursery=nursery,
                lease=lease,
                inbox=inbox,
            )
            supervisor.keeps_nursery = keeps_nursery
            if not keeps_nursery:  # a probe of a few steps is measured by itself
                start_bridges(run, job, history)
                supervisor.start_sampler = partial(_start_sampler, run, job, history)
                if mirror_of(job) is not None:
                    supervisor.start_mirror = partial(_start_mirror, run, job, history)
            return _supervise(supervisor, history, lease)
        finally:
            adopt_orphans(False)
            if events is None:
                log.close()
            lease.release()


def _start_sampler(run: RunDir, job: Job, history: History) -> DeviceSampler | None:
    try:
        return DeviceSampler(run, job)
    except OSError as err:  # no process to be had: a run is worth more than its readings
        history.emit("warning", code="devices/sampler-refused", facts={"why": err.strerror or str(err)})
        return None


def _start_mirror(run: RunDir, job: Job, history: History) -> MirrorProcess | None:
    try:
        return MirrorProcess(run, job)
    except OSError as err:  # no process to be had: the run continues, and whoever watches it is told
        why = err.strerror or str(err)
        facts = {"address": str(mirror_of(job)), "why": why, "run": run.name}
        history.emit("warning", code="mirror/failing", facts=facts)
        return None


def make_program(run: RunDir, job: Job, history: History, *, can_lose_ranks: bool = False) -> Program:
    """Return what the ranks of a job are.

    Args:
        can_lose_ranks: they can train the same batch on fewer of them.
    """
    if isinstance(job.program, ForeignLine):
        return LineProgram(run, job, job.program, history)
    return OwnEngine(run, job, history, can_lose_ranks=can_lose_ranks)


@contextmanager
def _room_for(job: Job, crew: Crew | None) -> Iterator[None]:
    """Allow this process the open files that many ranks take; the ranks themselves keep the limit they had."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ranks = job.world_size if crew is None else crew.world_size
    need = _FILES_A_RANK * ranks + _OTHER_FILES
    is_enough = soft == resource.RLIM_INFINITY or soft >= need
    if not is_enough and hard != resource.RLIM_INFINITY and hard < need:
        raise UsageError("launch/too-many-files", ranks=ranks, need=need, limit=hard)
    try:
        if not is_enough:
            resource.setrlimit(resource.RLIMIT_NOFILE, (need, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _supervise(supervisor: Supervisor, history: History, lease: Lease) -> Outcome:
    try:
        if lease.took_over is not None:
            facts = {"pid": lease.took_over.get("pid"), "host": lease.took_over.get("host")}
            history.emit("warning", code="launch/lease-taken-over", facts=facts)
        outcome = supervisor.supervise()
    except OSError as err:
        # A disk that is read-only or gone, no descriptors left: of the machine, and no bug; what is committed stays.
        why = f"{err.strerror or err}: {err.filename}" if err.filename else str(err)
        outcome = supervisor.give_up("launch/system-refused", {"why": why})
    except BaseException as err:
        supervisor.close()
        history.emit(
            "run_ended", state="failed", exit_code=1, steps=0, best=None, why="launch/bug", facts={"text": repr(err)}
        )
        raise
    # The history says "ended" only once every process of the run is gone.
    supervisor.close()
    history.run_ended(outcome)
    return outcome
