"""Leave a written run to a supervisor in a session of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Literal

from headway.launch import HOOK_SITE, LOG_NAME, Claims, Job, Lease, clear_abandoned
from headway.messages import language
from headway.process import DETACHED, TAG_NAME
from headway.telemetry import RunDir, read_objects

_POLL_S: Final = 0.02
_WAIT_S: Final = 300.0
_STOP_S: Final = 60.0
"""How much longer a run that is being stopped is waited for."""
_TIES: Final = (TAG_NAME, "HEADWAY_HOOK_", "HEADWAY_RANK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Detached:
    """A supervisor in its own session, as far as its start was watched."""

    pid: int
    state: Literal["training", "starting", "ended"]
    exit_code: int | None = None
    """How it ended, when it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a supervisor in the background is told in memory, for none of it may be written down."""

    claims: tuple[str, ...] = ()
    """What was claimed for it."""
    argv: tuple[str, ...] | None = None
    """Of a launch line, with its secrets; none: the job's file has all."""
    environment: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    """As in the job."""
    when_free: int | None = None
    """GPUs to wait for before anything starts."""

    @classmethod
    def of(cls, job: Job, claims: Claims, *, when_free: int | None = None) -> Orders:
        """Return what the file of a job leaves out."""
        argv = job.foreign.argv if job.foreign is not None else None
        return cls(claims=claims.names, argv=argv, environment=job.environment, when_free=when_free)

    def apply(self, job: Job) -> Job:
        """Return a job that was read from its file, whole again."""
        if job.foreign is None or self.argv is None:
            return job
        return replace(job, program=replace(job.foreign, argv=self.argv), environment=self.environment)

    @classmethod
    def read(cls, fd: int) -> Orders:
        """Take what was handed over in an open file."""
        with open(fd, encoding="utf-8", errors="surrogateescape") as file:
            found = json.load(file)
        argv = found["argv"]
        return cls(**{**found, "claims": tuple(found["claims"]), "argv": None if argv is None else tuple(argv)})

    @contextlib.contextmanager
    def handed_over(self) -> Iterator[int]:
        """Let a process that is started meanwhile inherit them in an open file."""
        fd = os.memfd_create("headway-orders", 0)
        try:
            with open(fd, "w", encoding="utf-8", errors="surrogateescape", closefd=False) as file:
                json.dump(asdict(self), file, ensure_ascii=False)
            os.lseek(fd, 0, os.SEEK_SET)
            yield fd
        finally:
            os.close(fd)


def detach_run(
    run: RunDir, orders: Orders, claims: Claims, *, wait_s: float = _WAIT_S, lease: Lease | None = None
) -> Detached:
    """Let a supervisor of its own session run it, with the claims, and the lease where it is held already."""
    words = ["--lang", language(), "supervise", str(run.root)]
    with orders.handed_over() as fd:
        command = [sys.executable, "-P", "-m", "headway", *words, "--orders", str(fd)]
        return detach(run, command, wait_s=wait_s, lease=lease, begun=claims.hand_over)


def detach(
    run: RunDir,
    argv: Sequence[str],
    *,
    wait_s: float = _WAIT_S,
    lease: Lease | None = None,
    begun: Callable[[int], None] | None = None,
) -> Detached:
    """Start a supervisor in its own session and return once the ranks train, the run has ended, or `wait_s` passed.

    A run that somebody has asked to stop meanwhile is waited for: that it trains would be wrong a moment later.
    `argv` is the whole command of the supervisor. A lease that is held is handed over: `argv` then ends in the number
    of its open lock. `begun` is called with the number of its process.
    """
    command = list(argv)
    seen = run.events.stat().st_size if run.events.exists() else 0
    if lease is None:
        pid = _spawn(run, command)
    else:
        with lease.handed_over() as lock:
            pid = _spawn(run, [*command, str(lock)])
    if begun is not None:
        begun(pid)
    deadline = time.monotonic() + wait_s
    kinds: set[object] = set()
    while time.monotonic() < deadline or ("stop_requested" in kinds and time.monotonic() < deadline + _STOP_S):
        done, status = os.waitpid(pid, os.WNOHANG)
        found, seen = read_objects(run.events, seen)
        kinds |= {event.get("kind") for event in found}
        if done:
            if lease is not None:
                clear_abandoned(run)
            return Detached(pid=pid, state="ended", exit_code=_exit_code(status))
        if "training_started" in kinds and "stop_requested" not in kinds:
            return Detached(pid=pid, state="training")
        time.sleep(_POLL_S)
    return Detached(pid=pid, state="starting")


def _exit_code(status: int) -> int:
    """Return an exit code as a shell would: 128 and the signal's number for a signal."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _own_environment() -> dict[str, str]:
    """Return ours without what ties a process to a run around us: a run in the background outlives that one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_TIES)}
    own = kept.get("PYTHONPATH", "").split(os.pathsep)
    kept["PYTHONPATH"] = os.pathsep.join(place for place in own if place != str(HOOK_SITE))
    if not kept["PYTHONPATH"]:
        del kept["PYTHONPATH"]
    name, _, value = DETACHED.partition("=")
    return {**kept, name: value}


def _spawn(run: RunDir, command: list[str]) -> int:
    log = os.fsencode(run.root / LOG_NAME)
    return os.posix_spawn(
        command[0],
        command,
        _own_environment(),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigdef=[signal.SIGINT, signal.SIGQUIT, signal.SIGTERM],
    )
