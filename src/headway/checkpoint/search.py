"""Which checkpoints are here, and which is the newest that can be trusted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.checkpoint.manifest import Manifest
from headway.checkpoint.names import LATEST, parse_final
from headway.checkpoint.verify import ALL_THREADS, verify_checkpoint
from headway.errors import CheckpointError


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
    """The newest checkpoint that verifies, and the newer ones that do not."""

    manifest: Manifest | None
    path: Path | None
    skipped: Sequence[tuple[Path, CheckpointError]]


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


def find_resumable(root: Path, *, threads: int = ALL_THREADS) -> Found:
    """Return the newest checkpoint that verifies in full, with a word about each newer one that does not."""
    skipped: list[tuple[Path, CheckpointError]] = []
    for info in reversed(list_checkpoints(root)):
        try:
            manifest = verify_checkpoint(info.path, threads=threads)
        except CheckpointError as err:
            skipped.append((info.path, err))
            continue
        return Found(manifest=manifest, path=info.path, skipped=skipped)
    return Found(manifest=None, path=None, skipped=skipped)


def read_latest(root: Path) -> Path | None:
    """Return what the hint file names, or None; a hint is never proof."""
    try:
        fd = os.open(root / LATEST, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None  # only a hint: the search does not need it
    try:
        name = os.read(fd, 256).decode("ascii", "replace").removesuffix("\n")
    finally:
        os.close(fd)
    return root / name if parse_final(name) is not None else None
