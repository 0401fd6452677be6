"""Runs without a terminal: start a supervisor in a session of its own, and ask the one that runs to stop."""

from __future__ import annotations

import os
import pwd
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headway.errors import UsageError
from headway.launch.hook import HOOK_SITE
from headway.launch.lease import Lease, clear_abandoned, find_holder
from headway.launch.listeners import read_processes
from headway.launch.nursery import ENTRY
from headway.launch.processes import DETACHED, TAG_NAME
from headway.launch.signals import POLITE_STOP
from headway.launch.terminal import LOG_NAME
from headway.telemetry import RunDir, find_pid, is_held, read_objects

_POLL_S = 0.02
_TIES = (TAG_NAME, "HEADWAY_HOOK_", "HEADWAY_RANK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Detached:
    """A supervisor in its own session, as far as its start was watched."""

    pid: int
    state: Literal["training", "starting", "ended"]
    exit_code: int | None = None
    """How it ended, when it has."""


def detach(
    run: RunDir,
    argv: Sequence[str] | None = None,
    *,
    preload: Sequence[str] = (),
    entry: str = ENTRY,
    wait_s: float = 300,
    lease: Lease | None = None,
) -> Detached:
    """Start a supervisor in its own session and return once the ranks train, the run has ended, or `wait_s` passed.

    `argv` is the whole command of the supervisor; without it the run's job is launched plainly. A lease that is held is
    handed over: `argv` then ends in the number of its open lock.
    """
    command = list(argv or [sys.executable, "-P", "-m", "headway.launch.detached", str(run.root), entry, *preload])
    seen = run.events.stat().st_size if run.events.exists() else 0
    if lease is None:
        pid = _spawn(run, command)
    else:
        with lease.handed_over() as lock:
            pid = _spawn(run, [*command, str(lock)])
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        found, seen = read_objects(run.events, seen)
        kinds = [event.get("kind") for event in found]
        if done:
            if lease is not None:
                clear_abandoned(run)
            return Detached(pid=pid, state="ended", exit_code=_exit_code(status))
        if "training_started" in kinds:
            return Detached(pid=pid, state="training")
        time.sleep(_POLL_S)
    return Detached(pid=pid, state="starting")


def _exit_code(status: int) -> int:
    """Return an exit code as a shell would: 128 and the signal's number for a signal."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def request_stop(run: RunDir, now: bool = False) -> int:
    """Ask the run's supervisor to save and stop, or to stop now; return its pid.

    Raises:
        UsageError: nobody supervises the run on this machine, or not where we can reach it.
    """
    holder = find_holder(run)
    if holder is None:
        raise UsageError("launch/not-running", run=run.name)
    pid = find_pid(holder)
    if pid is None:
        raise UsageError("launch/stop-elsewhere", run=run.name, pid=holder.get("pid"), host=holder.get("host"))
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError as err:
        raise UsageError("launch/not-running", run=run.name) from err
    try:
        # The pidfd holds on to one process; proving the lease again after opening it rules out a reused pid.
        if not is_held(holder):
            raise UsageError("launch/not-running", run=run.name)
        signal.pidfd_send_signal(pidfd, signal.SIGQUIT if now else _polite_signal(pid))
    except PermissionError as err:
        owner = _user_of(pid)
        raise UsageError("launch/stop-not-ours", run=run.name, pid=pid, user=owner, place=run.root) from err
    finally:
        os.close(pidfd)
    return pid


def _polite_signal(pid: int) -> int:
    """Return what asks a supervisor to stop; one of an older version would die of ours."""
    found = read_processes([pid]).get(pid)
    return POLITE_STOP if found is not None and found.has_handler(POLITE_STOP) else signal.SIGINT


def _user_of(pid: int) -> str:
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return "n/a"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


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
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigdef=[signal.SIGINT, signal.SIGQUIT, signal.SIGTERM],
    )
