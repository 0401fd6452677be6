"""Why a save failed, as an error a person can act on: which path, how much it needed, how much was free."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from headway.checkpoint.disk import Disk, Space
from headway.errors import CheckpointError
from headway.units import size

_CODES: Final = {
    errno.ENOSPC: "checkpoint/disk-full",
    errno.EDQUOT: "checkpoint/quota",
    errno.EFBIG: "checkpoint/file-limit",
    errno.EROFS: "checkpoint/read-only",
    errno.EACCES: "checkpoint/not-allowed",
    errno.EPERM: "checkpoint/not-allowed",
}

OWN_FAULTS: Final = frozenset(
    {
        "checkpoint/not-covered",
        "checkpoint/piece-outside",
        "checkpoint/piece-twice",
        "checkpoint/pieces-overlap",
        "checkpoint/ranks-disagree",
        "checkpoint/too-many-pieces",
    }
)
"""Failures that another try cannot cure, because the state handed over is wrong: they must reach the loop."""


DISK_FAULTS: Final = frozenset(
    {
        *_CODES.values(),
        "checkpoint/no-inodes",
        "checkpoint/parts-missing",
        "checkpoint/rank-failed",
        "checkpoint/unreadable",
        "checkpoint/write-failed",
    }
)
"""Failures that may pass: somebody frees space, a disk comes back."""


def explain(err: OSError, *, path: Path, need_bytes: int, disk: Disk) -> CheckpointError:
    """Turn an operating system's error into one of ours."""
    space = read_space(disk, path)
    code = _CODES.get(err.errno or 0, "checkpoint/write-failed")
    if code == "checkpoint/disk-full" and space is not None and space.free_inodes == 0:
        code = "checkpoint/no-inodes"
    return CheckpointError(
        code,
        path=err.filename or path,
        need=size(need_bytes),
        free=size(space.free_bytes if space else None),
        why=err.strerror or str(err),
    )


def too_full(path: Path, *, need_bytes: int, space: Space) -> CheckpointError:
    """Say that the disk is too full before a byte is written."""
    why = os.strerror(errno.ENOSPC)
    return CheckpointError(
        "checkpoint/disk-full", path=path, need=size(need_bytes), free=size(space.free_bytes), why=why
    )


def read_space(disk: Disk, path: Path) -> Space | None:
    """Return what is left where `path` lives, or None when even that cannot be known."""
    try:
        return disk.space(path if path.exists() else path.parent)
    except OSError:
        return None  # shown as n/a beside the failure that is being explained
