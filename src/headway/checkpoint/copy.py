"""A checkpoint in another run's folder: the same verified files under another roof."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from headway.checkpoint.names import TempName, parse_final
from headway.checkpoint.verify import verify_checkpoint


def copy_checkpoint(path: Path, root: Path) -> Path:
    """Put a checkpoint into another folder of checkpoints and return its place there.

    Files are linked where the disk allows it: a checkpoint is never written again, so both may share them.
    """
    name = parse_final(path.name)
    assert name is not None, "only what the search has found is copied"
    verify_checkpoint(path)
    root.mkdir(parents=True, exist_ok=True)
    temp, final = root / str(TempName(name.step, 0)), root / path.name
    shutil.copytree(path, temp, copy_function=_link_or_copy)
    for file in temp.iterdir():
        _sync(file)
    _sync(temp)
    temp.rename(final)
    _sync(root)
    verify_checkpoint(final)
    return final


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk, or one without links
        shutil.copyfile(source, target)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
