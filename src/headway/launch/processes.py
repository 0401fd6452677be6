"""What the kernel knows about processes: parents, sessions, tags; and the two calls that keep a tree from leaking."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from headway.launch.hook import JOB_NAMES

TAG_NAME: Final = "HEADWAY_RUN"
"""Environment variable every process of a run inherits; it finds them after all other ties are cut."""
DETACHED: Final = "HEADWAY_DETACHED=1"
"""In the environment of a supervisor in the background; its ranks have a tag beside it."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
_PR_SET_CHILD_SUBREAPER: Final = 36
_PROC: Final = Path("/proc")
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
