"""Who supervises a run: one process at a time, named in a file, proven dead before another takes over."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from typing import Any, Final

from headway.errors import UsageError
from headway.process import is_same_kernel, look_up, make_lease, sweep
from headway.telemetry import LOCK_NAME, RunDir, is_locked, read_json, refuse_planted, write_json

RENEW_S: Final = 5.0
FOREIGN_EXPIRES_S: Final = 60.0
_LOCK_TRIES: Final = 5
"""Whoever only looks whether a run is held has its lock for an instant."""
_LOCK_TRY_S: Final = 0.02


class Lease:
    """The right to supervise one run and to write into its directory; renewed while held, gone when released."""

    _is_released = False

    def __init__(self, run: RunDir, *, attempt: int = 0, tag: str | None = None, lock: int | None = None) -> None:
        """Take the right, or refuse.

        Args:
            tag: what marks the processes of the run; none: there are none yet.
            lock: the open lock of a lease that was handed over; it is ours already.
        """
        self.took_over: dict[str, Any] | None = None
        """The dead holder's lease, when there was one."""
        self.tag = tag
        self._run = run
        refuse_planted(run.root)
        if lock is not None:
            self._lock = lock
            self.record(attempt)
            return
        # The lock makes two starters on one machine exclusive; the lease tells them, and other machines, who it is.
        place = run.root / LOCK_NAME
        is_new = not place.exists()
        self._lock = _lock(run)
        try:
            self._take_lease()
        except BaseException:
            if is_new:  # another machine's own lock stays where it is
                place.unlink(missing_ok=True)
            os.close(self._lock)
            raise
        self.record(attempt)

    @contextlib.contextmanager
    def handed_over(self) -> Iterator[int]:
        """Let a process that is started meanwhile inherit the lock, then let go of it here without opening it."""
        os.set_inheritable(self._lock, True)
        try:
            yield self._lock
        except BaseException:
            os.set_inheritable(self._lock, False)
            raise
        # The lock is open until the last process that has it closes it.
        os.close(self._lock)
        self._is_released = True

    def record(self, attempt: int) -> None:
        """Write who holds the run, and which attempt is under way."""
        self._lease = {**make_lease(), "attempt": attempt, "tag": self.tag}
        with contextlib.suppress(OSError):  # a full disk must not end the run; the lock still holds
            write_json(self._run.lease, self._lease)

    def prove(self) -> None:
        """Refuse when another machine, which cannot see the lock, has taken the run over meanwhile."""
        lease = _read_lease(self._run)
        if lease is not None and any(lease.get(key) != self._lease[key] for key in ("host", "pid", "start_ticks")):
            raise _refusal(self._run, lease)

    def renew(self) -> None:
        """Show other machines that the holder lives."""
        with contextlib.suppress(OSError):
            os.utime(self._run.lease)

    def release(self) -> None:
        """Let go and leave no file; what was let go of or handed over stays as it is."""
        if self._is_released:
            return
        self._is_released = True
        with contextlib.suppress(OSError):
            self._run.lease.unlink()
        with contextlib.suppress(OSError):
            # What a killed holder was writing stays as a temporary file; nobody else would ever remove it.
            for torn in self._run.root.glob(f".{self._run.lease.name}.*"):
                torn.unlink()
        with contextlib.suppress(OSError):
            (self._run.root / LOCK_NAME).unlink()
        os.close(self._lock)

    def _take_lease(self) -> None:
        lease = _read_lease(self._run)
        if lease is None:
            return
        is_alive = look_up(lease)
        if is_alive is None and is_same_kernel(lease):
            is_alive = False  # of another container, but we have the lock that it would hold
        if is_alive:
            raise _refusal(self._run, lease)
        if is_alive is False:
            # What the dead holder could not end, for it was killed outright, must not write into our attempt.
            if isinstance(lease.get("tag"), str):
                sweep(lease["tag"])
        elif "host" in lease and (age_s := self._age_s()) < FOREIGN_EXPIRES_S:
            raise UsageError(
                "launch/lease-elsewhere",
                run=self._run.name,
                pid=lease.get("pid"),
                host=lease.get("host"),
                age=f"{age_s:.0f}",
            )
        self.took_over = lease

    def _age_s(self) -> float:
        # Both times come from the file server, so the two machines' clocks need not agree.
        os.utime(self._lock)
        return os.fstat(self._lock).st_mtime - self._run.lease.stat().st_mtime


def find_holder(run: RunDir) -> dict[str, Any] | None:
    """Return the lease of the living supervisor of this machine, or None; it may be in another container."""
    lease = _read_lease(run)
    if lease is None:
        return None
    is_alive = look_up(lease)
    if is_alive is None and is_same_kernel(lease):
        is_alive = is_locked(run.root)
    return lease if is_alive else None


def refuse_held(run: RunDir) -> None:
    """Refuse when somebody supervises the run, for a command that only reads; one that writes takes the lease."""
    holder = find_holder(run)
    if holder is not None:
        raise _refusal(run, holder)


def clear_abandoned(run: RunDir) -> None:
    """Remove the lease that we handed over to a process that has ended without ever taking it up."""
    try:
        lock = _lock(run)
    except UsageError:  # somebody else has it
        return
    with contextlib.suppress(OSError):
        if (_read_lease(run) or {}).get("pid") == os.getpid():
            run.lease.unlink()
            (run.root / LOCK_NAME).unlink()
    os.close(lock)


def _read_lease(run: RunDir) -> dict[str, Any] | None:
    try:
        lease = read_json(run.lease)
    except FileNotFoundError:
        return None
    except ValueError:  # torn by a power cut; whoever wrote it is gone
        return {}
    return lease if isinstance(lease, dict) else {}


def _lock(run: RunDir) -> int:
    path = run.root / LOCK_NAME
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            _take(lock)
        except BlockingIOError as err:
            os.close(lock)
            raise _refusal(run, _read_lease(run) or {}) from err
        # A holder that let go between our open and our lock has removed the file: only the one in place counts.
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(lock).st_ino:
                return lock
        os.close(lock)


def _take(lock: int) -> None:
    for turn in range(_LOCK_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if turn + 1 == _LOCK_TRIES:
                raise
            time.sleep(_LOCK_TRY_S)


def _refusal(run: RunDir, lease: dict[str, Any]) -> UsageError:
    return UsageError(
        "launch/already-supervised", run=run.name, pid=lease.get("pid", "n/a"), host=lease.get("host", "n/a")
    )
