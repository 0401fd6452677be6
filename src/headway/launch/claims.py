"""Who uses which GPU of this machine: one small file a thing in a folder that all users share.

A claim names its holder (user, pid, start time, boot). It is taken over only when that process is proven gone; a
file that cannot be read counts as held. A claim is the file's own creation, under the lock of the folder, so no two
ever win. The folder is open to all users, so nothing in it is trusted: no link, pipe or lock of another user is waited
for.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import json
import os
import secrets
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from headway.errors import CheckError
from headway.process import is_same_kernel, look_up, make_lease
from headway.telemetry import read_json

_FOLDER: Final = "headway-claims"
_LOCK_S: Final = 10.0
_LOCK_POLL_S: Final = 0.02


def claims_folder() -> Path:
    """Return the shared folder; everybody may add files to it, only their owners may remove them."""
    return Path(os.environ.get("HEADWAY_CLAIMS") or Path(tempfile.gettempdir()) / _FOLDER)


class Claims:
    """The things one run holds; released together."""

    def __init__(self, run: str, folder: Path | None = None) -> None:
        self._run, self._folder = run, folder or claims_folder()
        self._held: list[str] = []

    def take(self, name: str) -> dict[str, Any] | None:
        """Claim a thing; return its holder when somebody else has it."""
        self._open_folder()
        with self._alone():
            while True:
                holder = self._create(name)
                if holder is None:
                    self._held.append(name)
                    return None
                if holder.get("is_held", True) or not self._remove_stale(name):
                    return holder

    def find_holder(self, name: str) -> dict[str, Any] | None:
        """Return who else has a thing; None: nobody, as far as can be seen."""
        if name in self._held:
            return None
        holder = _read_holder(self._path(name))
        return holder if holder["is_held"] else None

    def hand_over(self, pid: int) -> None:
        """Let a child process hold everything in our place; it is to release it too."""
        if not self._held:
            return
        with self._alone():
            for name in self._held:
                self._write(name, make_lease(pid))

    def receive(self, names: Iterable[str]) -> None:
        """Hold what was handed over to this process."""
        self._held += names

    def release(self, prefix: str = "") -> None:
        """Let go of everything, or of the things whose names begin so."""
        for name in [name for name in self._held if name.startswith(prefix)]:
            drop_claims([str(self._path(name))], os.getpid())
            self._held.remove(name)

    @property
    def names(self) -> tuple[str, ...]:
        """What is held."""
        return tuple(self._held)

    def files(self) -> tuple[str, ...]:
        """Return the files that stand for what is held."""
        return tuple(str(self._path(name)) for name in self._held)

    def _open_folder(self) -> None:
        """Make the folder for everybody.

        Raises:
            CheckError: it is another user's and closed to us, or no folder.
        """
        if not os.path.isdir(self._folder):
            with contextlib.suppress(OSError):
                self._folder.mkdir(parents=True)
                self._folder.chmod(0o1777)
        if not os.path.isdir(self._folder) or not os.access(self._folder, os.R_OK | os.W_OK | os.X_OK):
            raise CheckError("launch/claims-closed", folder=self._folder, user=_owner(self._folder))

    def _create(self, name: str) -> dict[str, Any] | None:
        """Create the file; return the holder, with `is_held`, when there is one."""
        temp = self._temp(name, make_lease())
        try:
            os.link(temp, self._path(name))  # whole or not at all, and only one wins
        except FileExistsError:
            return _read_holder(self._path(name))
        finally:
            temp.unlink()
        return None

    def _write(self, name: str, lease: dict[str, Any]) -> None:
        self._temp(name, lease).replace(self._path(name))

    def _temp(self, name: str, lease: dict[str, Any]) -> Path:
        """Write a claim beside its place, whole."""
        temp = self._folder / f".{self._path(name).name}.{os.getpid()}.{secrets.token_hex(4)}"
        temp.write_text(json.dumps({**lease, "user": _user(), "run": self._run}), encoding="utf-8")
        temp.chmod(0o644)
        return temp

    def _remove_stale(self, name: str) -> bool:
        """Remove the claim of a process proven gone; say whether trying again makes sense."""
        try:
            self._path(name).unlink(missing_ok=True)
        except PermissionError:  # another user's file in a sticky folder: theirs to remove
            return False
        return True

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the folder's own lock: between the look at a stale claim and its removal nobody else may take it."""
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            deadline = time.monotonic() + _LOCK_S
            while not _try_lock(folder):  # anybody may hold this lock, and for as long as they like
                if time.monotonic() > deadline:
                    raise CheckError("launch/claims-locked", folder=self._folder, seconds=f"{_LOCK_S:g}")
                time.sleep(_LOCK_POLL_S)
            yield
        finally:
            os.close(folder)

    def _path(self, name: str) -> Path:
        return self._folder / name.replace("/", "_")


def drop_claims(files: Iterable[str], pid: int) -> None:
    """Remove claims that a process which has just ended could not remove itself; another's are left alone."""
    for name in files:
        with contextlib.suppress(OSError, ValueError):
            holder = read_json(Path(name))
            if isinstance(holder, dict) and holder.get("pid") == pid:
                Path(name).unlink()


def _try_lock(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _owner(folder: Path) -> str:
    try:
        return folder.owner()
    except (KeyError, OSError):
        return "n/a"


def _read_holder(path: Path) -> dict[str, Any]:
    if path.is_symlink():
        return {"is_held": True}
    try:
        holder = read_json(path)
    except FileNotFoundError:
        return {"is_held": False}
    except (OSError, ValueError):
        return {"is_held": True}
    if not isinstance(holder, dict):
        return {"is_held": True}
    is_alive = look_up(holder)
    # Of a container that cannot be seen from here: not proven gone.
    return {**holder, "is_held": is_same_kernel(holder) if is_alive is None else is_alive}


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
