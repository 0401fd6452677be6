"""Which checkpoints are here, and which is the newest that can be trusted."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from headway.checkpoint.manifest import Manifest
from headway.checkpoint.names import LATEST, parse_final
from headway.checkpoint.verify import ALL_THREADS, check_outline, verify_checkpoint
from headway.errors import CheckpointError

Value = TypeVar("Value")

PATIENCE_S: Final = 10.0
"""How long, in all, a disk that cannot be read just now is asked again."""
_FIRST_WAIT_S: Final = 0.1
_LAST_WAIT_S: Final = 2.0
_FOR_GOOD: Final = (errno.EACCES, errno.EPERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInfo:
    """A checkpoint by its name; nothing of it has been read."""

    path: Path
    step: int
    rewrite: int
    """How often this step had been written before."""
    is_verified: bool | None = None
    """Whether it is known to be whole; None: nobody looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The newest checkpoint that passes verification, and the newer ones that do not."""

    manifest: Manifest | None
    path: Path | None
    skipped: Sequence[tuple[Path, CheckpointError]]


class Patience:
    """Asks again while a disk refuses to be read: a cable, a network or a controller may come back."""

    def __init__(self) -> None:
        self._left_s, self._wait_s = PATIENCE_S, _FIRST_WAIT_S

    def read(self, read: Callable[[], Value]) -> Value:
        """Return what `read` does; an error of the disk is raised when the time for all readings is used up."""
        while True:
            try:
                return read()
            except CheckpointError as err:
                if self._left_s <= 0 or not _may_pass(err):
                    raise
            time.sleep(self._wait_s)
            self._left_s -= self._wait_s
            self._wait_s = min(2 * self._wait_s, _LAST_WAIT_S)


def list_checkpoints(root: Path) -> list[CheckpointInfo]:
    """Return the checkpoints of a folder, oldest step first; what is being written or deleted is not one."""
    try:
        names = os.listdir(root)
    except FileNotFoundError:
        return []
    except OSError as err:
        raise CheckpointError("checkpoint/unreadable", path=root, why=err.strerror or str(err)) from err
    found = sorted((parsed, name) for name in names if (parsed := parse_final(name)) is not None)
    return [CheckpointInfo(path=root / name, step=parsed.step, rewrite=parsed.rewrite) for parsed, name in found]


def find_resumable(root: Path, *, threads: int = ALL_THREADS, patience: Patience | None = None) -> Found:
    """Return the newest checkpoint that passes verification in full, with a word about each newer one that does not."""
    return _find(root, lambda path: verify_checkpoint(path, threads=threads), patience or Patience())


def find_likely(root: Path) -> Found:
    """Return the newest checkpoint whose manifest, file names and sizes are right; its data are not read."""
    return _find(root, check_outline, Patience())


def refuse_lost(found: Found, root: Path, history: Iterable[Mapping[str, Any]]) -> None:
    """Refuse to begin at step 0 where there is or was a checkpoint: unreadable is not absent.

    `history` is the run's events: a run that was told to begin from scratch does, until its next commit.
    """
    if found.path is not None:
        return
    run = str(root.parent)
    step, is_told = None, False
    for event in history:
        if event.get("kind") == "run_resumed" and event.get("from_scratch"):
            step, is_told = None, True
        elif event.get("kind") == "checkpoint_committed":
            step, is_told = event.get("step"), False
        elif event.get("kind") == "run_started" and event.get("checkpoint"):  # a fork begins at a copy
            name = parse_final(str(event["checkpoint"]))
            step, is_told = name.step if name else None, False
    if found.skipped and not is_told:
        path, why = found.skipped[0]
        facts = {"num": len(found.skipped), "path": root, "newest": path.name, "why": why.text()}
        raise CheckpointError("checkpoint/none-resumable", run=run, **facts)
    if step is not None:
        raise CheckpointError("checkpoint/all-gone", run=run, path=root, step=step)


def read_latest(root: Path) -> Path | None:
    """Return what the hint file names, or None where there is none; a hint is never proof.

    Raises:
        OSError: it is there and cannot be read; the search does not need it.
    """
    try:
        fd = os.open(root / LATEST, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        name = os.read(fd, 256).decode("ascii", "replace").removesuffix("\n")
    finally:
        os.close(fd)
    return root / name if parse_final(name) is not None else None


def _find(root: Path, prove: Callable[[Path], Manifest], patience: Patience) -> Found:
    skipped: list[tuple[Path, CheckpointError]] = []
    for info in reversed(patience.read(lambda: list_checkpoints(root))):
        try:
            manifest = patience.read(lambda path=info.path: prove(path))  # type: ignore[misc]
        except CheckpointError as err:
            skipped.append((info.path, err))
            continue
        return Found(manifest=manifest, path=info.path, skipped=skipped)
    return Found(manifest=None, path=None, skipped=skipped)


def _may_pass(err: CheckpointError) -> bool:
    """Tell a disk that fails from data that are wrong, and from a door that is closed."""
    cause = err.__cause__
    return err.code == "checkpoint/unreadable" and isinstance(cause, OSError) and cause.errno not in _FOR_GOOD
