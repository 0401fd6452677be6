"""Which checkpoints go, and how they go without ever looking like one that stays."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from headway.checkpoint.disk import Disk, RealDisk, remove_tree
from headway.checkpoint.names import is_trash, parse_dropped, parse_temp, trash_name
from headway.checkpoint.search import CheckpointInfo


def plan_prune(
    infos: Sequence[CheckpointInfo],
    *,
    keep_last: int,
    keep_every: int | None,
    best_step: int | None,
    in_use: Collection[Path] = (),
) -> list[Path]:
    """Return what retention lets go, oldest first.

    Kept are the newest `keep_last` that are not known to be broken, multiples of `keep_every`, the best, what is in
    use, and the newest verified one. Nothing newer than that one goes, and nothing at all while none is verified. A
    step that was written again, and verified, counts once: to fall back on, another step is worth more than a copy.
    """
    verified = [info for info in infos if info.is_verified]
    if not verified:
        return []
    newest = max(verified, key=_age)
    every = sorted((info for info in infos if info.is_verified is not False), key=_age)
    copies = {older.path for older, newer in pairwise(every) if older.step == newer.step and newer.is_verified}
    sound = [info for info in every if info.path not in copies]
    keep = {newest.path, *in_use, *(info.path for info in sound[-max(1, keep_last) :])}
    keep |= {info.path for info in sound if keep_every and info.step and info.step % keep_every == 0}
    best = [info for info in sound if info.step == best_step]
    keep |= {info.path for info in best[-1:]}
    return [info.path for info in sorted(infos, key=_age) if info.path not in keep and _age(info) < _age(newest)]


def best_there(infos: Sequence[CheckpointInfo], steps: Iterable[int | None]) -> int | None:
    """Return the first of these steps, best first, whose checkpoint is there: a best one may not have been saved."""
    there = {info.step for info in infos if info.is_verified is not False}
    return next((step for step in steps if step in there), None)


def prune(root: Path, paths: Sequence[Path], *, disk: Disk | None = None) -> list[Path]:
    """Delete checkpoints: first the name goes, durably, then what is in it. Return what is gone."""
    disk = disk or RealDisk()
    for path in paths:
        discard(root, path, disk=disk)
    return list(paths)


def discard(root: Path, path: Path, *, disk: Disk) -> None:
    """Rename to a trash name, make that durable, delete; after a crash in between `sweep` finishes."""
    trash = trash_name(path)
    disk.rename(path, trash)
    # Without this a power cut could bring the old name back, with some of its files gone.
    disk.sync_dir(root)
    remove_tree(disk, trash)


def find_leftovers(root: Path, attempt: int) -> list[Path]:
    """Return what attempts up to `attempt` left half written or half deleted; newer ones are another supervisor's."""
    found = []
    for name in sorted(os.listdir(root)) if root.is_dir() else []:
        temp, dropped = parse_temp(name), parse_dropped(name)
        is_stale = (temp is not None and temp.attempt <= attempt) or (dropped is not None and dropped[1] <= attempt)
        if is_stale or is_trash(name):
            found.append(root / name)
    return found


def sweep(root: Path, attempt: int, *, disk: Disk | None = None) -> list[Path]:
    """Remove the leftovers; return them. Call it once, before this attempt's first save."""
    disk = disk or RealDisk()
    leftovers = find_leftovers(root, attempt)
    for path in leftovers:
        if path.is_dir() and not path.is_symlink():
            remove_tree(disk, path)
        else:
            disk.unlink(path)
    return leftovers


def _age(info: CheckpointInfo) -> tuple[int, int]:
    return info.step, info.rewrite
