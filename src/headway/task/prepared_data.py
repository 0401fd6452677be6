"""Prepared data appears whole or not at all, and its folder is held by a lock that ends with its holder."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headway.messages import say as line
from headway.task.seal import write_seal


def install(folder: Path, fill: Callable[[Path], object], *, seal: bool = False) -> None:
    """Fill a temporary folder, then give it its name in one step. The caller holds the lock.

    Args:
        seal: keep hashes beside the files; a folder from before there were seals is replaced.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left in folder.parent.glob(f"{folder.name}.tmp-*"):
        shutil.rmtree(left)
    temp = folder.with_name(f"{folder.name}.tmp-{os.getpid()}")
    temp.mkdir()
    try:
        fill(temp)
        if seal:
            write_seal(temp)
            shutil.rmtree(folder, ignore_errors=True)
        sync_tree(temp)
        temp.rename(folder)
    except BaseException:
        shutil.rmtree(temp, ignore_errors=True)
        raise
    sync(folder.parent)


def sync_tree(folder: Path) -> None:
    """Make a folder durable: its own files one by one; of the many below, the order of the journal is enough."""
    for file in folder.iterdir():
        if file.is_file():
            sync(file)
    sync(folder)


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def lock(file: Path, *, is_patient: bool = True, on_wait: Callable[[], None] | None = None) -> Iterator[bool]:
    """Hold a lock file and tell whether it worked; the patient wait for whoever has it."""
    with file.open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_mine = True
        except BlockingIOError:
            is_mine = is_patient
            if is_patient:
                if on_wait is not None:
                    on_wait()
                fcntl.flock(held, fcntl.LOCK_EX)
        yield is_mine


@contextmanager
def hold(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold a data folder against other preparers; say so before waiting for one."""
    folder.mkdir(parents=True, exist_ok=True)
    with lock(folder / ".prepare.lock", on_wait=lambda: say(line("recipes/waiting", folder=folder))):
        yield
