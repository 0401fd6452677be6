"""What the kernel knows about processes: who one is, its parents and tags; and the calls that keep a tree from leaking.

A pid alone names nobody: it is reused, and a container has pids of its own. `make_lease` writes down who a process is;
`look_up` and `find_pid` find that process again, or say that it is gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

TAG_NAME: Final = "HEADWAY_RUN"
"""Environment variable every process of a run inherits; it finds them after all other ties are cut."""
DETACHED: Final = "HEADWAY_DETACHED=1"
"""In the environment of a supervisor in the background; its ranks have a tag beside it."""

JOB_NAMES: Final = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "ENVIRONMENT")
"""What batch systems call a job (Slurm also says BATCH); a job that a script submits inherits its environment."""

STACKS_SIGNAL: Final = signal.SIGRTMIN + 13
"""Asks a rank for the stacks of all its threads."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
_PR_SET_CHILD_SUBREAPER: Final = 36
_PROC: Final = Path("/proc")
_FIRST_NAMESPACE: Final = 0xEFFFFFFC
"""The kernel's own number for the PID namespace it starts with."""
_CLEANERS: Final = (b"multiprocessing.resource_tracker", b"torch_shm_manager")
"""Processes that remove shared memory once those who made it are gone, and then end by themselves."""
CLEANERS_S: Final = 1.0
"""How long they may take for it."""


def die_with_parent(parent: int, signum: int = signal.SIGKILL) -> None:
    """Ask the kernel for a signal when the parent ends; leave at once when it has ended already.

    The signal follows the parent *thread*: whoever starts processes must do so from a thread that lives on.
    """
    _prctl(_PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans(is_on: bool = True) -> None:
    """Become the parent of every descendant whose own parent ends, so that none slips away to init."""
    _prctl(_PR_SET_CHILD_SUBREAPER, int(is_on))


def name_process(name: str) -> None:
    """Set the short name that `ps` and `top` show."""
    _prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]))


def descendants(pid: int) -> list[int]:
    """Return all living descendants of a process, parents before children.

    A run that was started in the background from inside of this one is a run of its own, with all that is below it.
    """
    found: dict[int, None] = {}
    queue = deque([pid])
    while queue:
        for child in _children(queue.popleft()):
            if child not in found and not _is_detached(child):
                found[child] = None
                queue.append(child)
    return list(found)


def tagged(tag: str) -> list[int]:
    """Return our own user's processes that were started with this run's tag, this process apart."""
    wanted = f"{TAG_NAME}={tag}".encode()
    # A job that the script has submitted carries the tag too, but belongs to the batch system.
    own_job = _job_of([f"{name}={os.environ[name]}".encode() for name in JOB_NAMES if name in os.environ])
    found = []
    for place in _PROC.iterdir() if _PROC.is_dir() else ():
        if not place.name.isdigit() or int(place.name) == os.getpid():
            continue
        try:
            environment = (place / "environ").read_bytes()
        except OSError:  # gone, or another user's
            continue
        variables = environment.split(b"\0")
        if wanted in variables and _job_of(variables) == own_job:
            found.append(int(place.name))
    return sorted(found)


def _job_of(variables: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return the batch job that an environment belongs to; what `srun` starts from outside of one belongs to none."""
    names = [name.encode() for name in JOB_NAMES]
    found = {name: value for name, _, value in (one.partition(b"=") for one in variables) if name in names}
    if found.pop(b"ENVIRONMENT", b"") != b"BATCH":
        found.pop(b"SLURM_JOB_ID", None)
    return found


def _is_detached(pid: int) -> bool:
    """Say whether a process leads a run that `--detach` has started."""
    try:
        variables = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return DETACHED.encode() in variables and not any(one.startswith(TAG_NAME.encode() + b"=") for one in variables)


def send_signal(pid: int, signum: int) -> bool:
    """Signal a process, a dead one is fine; say whether we may."""
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def kill_all(pids: Iterable[int]) -> None:
    """Send SIGKILL to each; those already gone are fine, those of other users (sudo) are not ours to end."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def without_cleaners(pids: Iterable[int]) -> list[int]:
    """Leave out processes that only wait to clean up; killed together with the others they would leave segments."""
    return [pid for pid in pids if not any(name in _command(pid) for name in _CLEANERS)]


def _command(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def sweep(tag: str, timeout_s: float = 5.0) -> list[int]:
    """Kill every process with the tag, reap those that are ours, and return the pids that had to be killed."""
    killed: list[int] = []
    began = time.monotonic()
    while (left := tagged(tag)) and (spent_s := time.monotonic() - began) < timeout_s:
        due = without_cleaners(left) if spent_s < CLEANERS_S else left
        killed += [pid for pid in due if pid not in killed]
        kill_all(due)
        for pid in left:
            _reap(pid)
        time.sleep(0.005)
    return killed


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                found += [int(child) for child in (task / "children").read_text(encoding="ascii").split()]
    return found


def _prctl(option: int, value: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def make_lease(pid: int | None = None) -> dict[str, Any]:
    """Return the lease of a process of this machine: pid, start ticks, boot, host and PID namespace."""
    pid = os.getpid() if pid is None else pid
    return {
        "pid": pid,
        "boot_id": boot_id(),
        "start_ticks": start_ticks(pid),
        "host": socket.gethostname(),
        "pid_ns": pid_namespace(),
    }


def pid_namespace(pid: int | str = "self") -> int | None:
    """Return the number of a process's PID namespace; none where the system does not tell."""
    try:
        return Path(f"/proc/{pid}/ns/pid").stat().st_ino
    except OSError:
        return None


def boot_id() -> str | None:
    """Return this boot's id; none where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; none when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold spaces and parentheses; fields count from the last one. Z: dead, not yet reaped.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def is_held(lease: dict[str, Any]) -> bool:
    """Say whether the process of a lease is seen alive from here."""
    return look_up(lease) is True


def look_up(lease: dict[str, Any]) -> bool | None:
    """Say whether the process of a lease lives; none: it cannot be seen from here.

    A container has pids of its own, and may have the host's name: only within one PID namespace a pid is a process.
    """
    if lease.get("host") != socket.gethostname():
        return None
    if not isinstance(lease.get("pid"), int) or lease.get("boot_id") != boot_id():
        return False
    if find_pid(lease) is not None:
        return True
    # From the first namespace root sees every process of the machine: what it does not see is gone.
    sees_all = pid_namespace() == _FIRST_NAMESPACE and os.geteuid() == 0
    return False if _is_same_namespace(lease) or sees_all else None


def find_pid(lease: dict[str, Any]) -> int | None:
    """Return the number by which the living process of a lease of this machine can be signalled from here."""
    pid = lease.get("pid")
    if not isinstance(pid, int):
        return None
    known = [pid] if _is_same_namespace(lease) else _find_in_namespace(lease["pid_ns"], pid)
    ticks = lease.get("start_ticks")
    return next((one for one in known if ticks is not None and start_ticks(one) == ticks), None)


def is_same_kernel(lease: dict[str, Any]) -> bool:
    """Say whether the lease was taken on this machine since it was started; its locks are then seen from here too."""
    is_same_boot = lease.get("boot_id") is not None and lease.get("boot_id") == boot_id()
    return is_same_boot and lease.get("host") == socket.gethostname()


def _is_same_namespace(lease: dict[str, Any]) -> bool:
    """Say whether pids of the lease are pids here; one of an older version does not tell, and meant ours."""
    own, theirs = pid_namespace(), lease.get("pid_ns")
    return own is None or not isinstance(theirs, int) or own == theirs


def _find_in_namespace(namespace: int, pid: int) -> list[int]:
    """Return the processes that have this number in a namespace inside of ours."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and pid_namespace(place.name) == namespace:
            with contextlib.suppress(OSError):
                lines = (place / "status").read_text(encoding="utf-8", errors="replace").splitlines()
                numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
                if numbers[-1:] == [str(pid)]:
                    found.append(int(place.name))
    return found
