"""Launch a run: take the lease, supervise, and leave nothing behind."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from headway.launch.foreign import Foreign
from headway.launch.job import read_job
from headway.launch.lease import Lease
from headway.launch.outcome import Observer, Outcome
from headway.launch.processes import adopt_orphans
from headway.launch.signals import SignalInbox
from headway.launch.supervisor import Supervisor
from headway.launch.telling import Telling
from headway.launch.warm import Nursery
from headway.telemetry import EventLog, RunDir


def launch_run(
    run: RunDir,
    *,
    observer: Observer,
    nursery: Nursery,
    events: EventLog | None = None,
    keeps_nursery: bool = False,
    foreign: Foreign | None = None,
) -> Outcome:
    """Supervise a run to its end and say how it ended.

    Call it in the main thread, the one that started the nursery; it ends the nursery too, unless the caller keeps it
    for a next run. `foreign` is the line with its secrets, which the run's job file leaves out.
    `events` is the log the caller has been writing; without it the run's own is opened. Restarts
    continue the attempt numbers of the run.

    Raises:
        UsageError: another supervisor holds the run.
    """
    job = read_job(run)
    if foreign is not None:
        job = replace(job, foreign=foreign)
    with nullcontext() if keeps_nursery else nursery:
        lease = Lease(run, attempt=0, tag=nursery.tag)
        log = events if events is not None else EventLog(run.events)
        # Should the nursery be killed, what its ranks had started comes to us and not to init.
        adopt_orphans()
        try:
            with SignalInbox() as inbox:
                tell = Telling(log, observer)
                supervisor = Supervisor(job, tell=tell, nursery=nursery, lease=lease, inbox=inbox)
                supervisor.keeps_nursery = keeps_nursery
                return _supervise(supervisor, tell, lease)
        finally:
            adopt_orphans(False)
            if events is None:
                log.close()
            lease.release()


def _supervise(supervisor: Supervisor, tell: Telling, lease: Lease) -> Outcome:
    try:
        if lease.took_over is not None:
            facts = {"pid": lease.took_over.get("pid"), "host": lease.took_over.get("host")}
            tell.emit("warning", code="launch/lease-taken-over", facts=facts)
        outcome = supervisor.supervise()
    except OSError as err:
        # A disk that is read-only or gone, no descriptors left: of the machine, and no bug; what is committed stays.
        why = f"{err.strerror or err}: {err.filename}" if err.filename else str(err)
        outcome = supervisor.give_up("launch/system-refused", {"why": why})
    except BaseException as err:
        supervisor.close()
        tell.emit(
            "run_ended", state="failed", exit_code=1, steps=0, best=None, why="launch/bug", facts={"text": repr(err)}
        )
        raise
    # The history says "ended" only once every process of the run is gone.
    supervisor.close()
    tell.run_ended(outcome)
    return outcome
