"""Ask the supervisor of a run to stop, or to save."""

from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Callable

from headway.errors import UsageError
from headway.launch.lease import find_holder
from headway.launch.listeners import read_processes
from headway.launch.signals import POLITE_STOP
from headway.process import find_pid, is_held
from headway.telemetry import RunDir


def request_stop(run: RunDir, now: bool = False) -> int:
    """Ask the run's supervisor to save and stop, or to stop now; return its pid.

    Raises:
        UsageError: nobody supervises the run on this machine, or not where we can reach it.
    """
    return _signal_holder(run, lambda pid: signal.SIGQUIT if now else _polite_signal(pid))


def request_save(run: RunDir) -> int:
    """Ask the run's supervisor for a checkpoint now; training continues; return its pid.

    Raises:
        UsageError: nobody supervises the run on this machine, or not where we can reach it.
    """
    return _signal_holder(run, lambda pid: signal.SIGUSR1)


def _signal_holder(run: RunDir, choose: Callable[[int], int]) -> int:
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
        signal.pidfd_send_signal(pidfd, choose(pid))
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
