"""Rank 0's half of a save: wait for every rank's part, write the manifest, and make the name appear. See DESIGN 4."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from headway.checkpoint.disk import Disk, RealDisk, write_file
from headway.checkpoint.manifest import Manifest, TensorEntry, check_cover
from headway.checkpoint.names import (
    LATEST,
    MANIFEST,
    MANIFEST_HASH,
    FinalName,
    failed_name,
    parse_final,
    parse_temp,
    part_name,
)
from headway.checkpoint.shard import Part, read_part
from headway.checkpoint.verify import hash_line, verify_bytes, verify_checkpoint
from headway.errors import CheckpointError
from headway.weights.reading import open_folder, read_small
from headway.weights.strict import parse_json, shown

_FIRST_POLL_S: Final = 0.002
_LAST_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveFields:
    """What the loop says about the step that is saved; see `Manifest` for each."""

    samples: int = 0
    ledger: str = ""
    strategy: str = "single"
    measures: Mapping[str, float] = field(default_factory=dict)
    suspect: bool = False
    best_step: int | None = None
    older_bests: Sequence[int] = ()
    """Steps that were the best before, newest first; retention keeps one of them while the best is not there."""
    meta: Mapping[str, Any] = field(default_factory=dict)


def gather_parts(
    temp: Path, world_size: int, own: Part, *, timeout_s: float, pause: Callable[[float], object] = time.sleep
) -> list[Part]:
    """Wait until every rank's part list is there; a rank that failed, or that never came, is named.

    `own` is rank 0's: whoever wrote it need not read it.
    """
    parts: dict[int, Part] = {0: own}
    deadline, wait_s = time.monotonic() + timeout_s, _FIRST_POLL_S
    while True:
        names = set(os.listdir(temp))
        for rank in range(world_size):
            if failed_name(rank) in names:
                raise CheckpointError("checkpoint/rank-failed", rank=rank, why=_read_reason(temp, rank))
            if rank not in parts and part_name(rank) in names:
                parts[rank] = read_part(temp, rank)
        if len(parts) == world_size:
            return [parts[rank] for rank in range(world_size)]
        if time.monotonic() > deadline:
            missing = ", ".join(str(rank) for rank in range(world_size) if rank not in parts)
            raise CheckpointError("checkpoint/parts-missing", ranks=missing, seconds=f"{timeout_s:.0f}", path=temp)
        pause(wait_s)
        wait_s = min(wait_s * 1.5, _LAST_POLL_S)


def merge_parts(parts: Sequence[Part], *, step: int, attempt: int, fields: SaveFields, where: str) -> Manifest:
    """Make one manifest of all parts; ranks that disagree about a tensor, or leave a hole in one, are refused."""
    tensors: dict[str, TensorEntry] = {}
    for part in parts:
        for name, entry in part.tensors.items():
            have = tensors.setdefault(name, entry)
            if have is entry:
                continue
            if (have.dtype, have.shape) != (entry.dtype, entry.shape):
                raise CheckpointError(
                    "checkpoint/ranks-disagree",
                    name=name,
                    first=f"{have.dtype} {list(have.shape)}",
                    second=f"{entry.dtype} {list(entry.shape)}",
                )
            tensors[name] = TensorEntry(have.dtype, have.shape, (*have.pieces, *entry.pieces))
    manifest = Manifest(
        step=step,
        samples=fields.samples,
        ledger=fields.ledger,
        world_size=len(parts),
        strategy=fields.strategy,
        attempt=attempt,
        time=time.time(),
        measures=fields.measures,
        suspect=fields.suspect,
        best_step=fields.best_step,
        meta=fields.meta,
        files={part.file: part.entry for part in parts},
        tensors=tensors,
    )
    check_cover(manifest, where=where)
    return manifest


def seal(disk: Disk, root: Path, temp: Path, manifest: Manifest, data: bytes) -> Path:
    """Turn a written folder into a checkpoint; the order of these lines is the promise. Return its path.

    `data` is the manifest's file.
    """
    # After every shard: a manifest that is there names only files whose bytes are on the disk. Its own hash comes last,
    # since a manifest cut short by a power cut could still be read as JSON.
    write_file(disk, temp / MANIFEST, [memoryview(data)])
    write_file(disk, temp / MANIFEST_HASH, [memoryview(hash_line(data))])
    for rank in range(manifest.world_size) if manifest.world_size > 1 else ():
        disk.unlink(temp / part_name(rank))
    # Before the rename: a file's fsync does not make its name durable, and a folder under its final name is believed.
    disk.sync_dir(temp)
    final = root / str(_free_name(root, manifest.step))
    disk.rename(temp, final)
    return final


def prove(disk: Disk, root: Path, final: Path, manifest: Manifest, data: bytes, *, is_known: bool) -> None:
    """Make the new name durable and read everything back from the disk.

    Only then is the checkpoint told to anybody: the event, `latest` and the pruning of older ones all follow. Where a
    checkpoint with the same tensors in the same places has been read and understood before, the bytes are proof enough.
    """
    # The rename itself is lost in a power cut until its parent is synced.
    disk.sync_dir(root)
    # One thread: the ranks' own cores are training.
    if is_known:
        verify_bytes(final, manifest, data)
    else:
        verify_checkpoint(final, threads=1, is_fresh=True)


def point_latest(disk: Disk, root: Path, final: Path) -> None:
    """Replace the hint file. It is for people and for the other ranks; a resume verifies, and does not believe it."""
    temp = root / f"{LATEST}.new"
    if temp.is_symlink() or temp.exists():
        disk.unlink(temp)
    write_file(disk, temp, [memoryview(f"{final.name}\n".encode())])
    disk.rename(temp, root / LATEST)


def _free_name(root: Path, step: int) -> FinalName:
    """Return a name that no checkpoint has: a name is never used twice."""
    taken = [name.rewrite for text in os.listdir(root) if (name := parse_final(text)) and name.step == step]
    return FinalName(step, max(taken) + 1 if taken else 0)


def _read_reason(temp: Path, rank: int) -> str:
    name = failed_name(rank)
    with open_folder(temp) as folder:
        data = read_small(folder, name, where=temp, cap=1 << 16)
    if not data:
        return "n/a"  # the disk was too full even for the reason
    found = parse_json(data, where=str(temp / name))
    return shown(found.get("why") if isinstance(found, dict) else found, 400)


def leave_mark(disk: Disk, folder: Path, rank: int, why: str) -> None:
    """Tell rank 0, through the folder, that a rank's part will not come; an empty mark needs no space."""
    mark = folder / failed_name(rank)
    temp = mark.with_name(f"{mark.name}.new")
    try:
        write_file(disk, temp, [memoryview(json.dumps({"why": why}, ensure_ascii=False).encode())])
    except OSError:
        disk.close(disk.create(mark))
        return
    disk.rename(temp, mark)


def mark_for(root: Path, event: Mapping[str, Any]) -> bool:
    """Leave a rank's mark in its place: it has reported that it could write neither its part nor the mark.

    Called by the supervisor, which what keeps one rank from writing (its limits, its mount) may not keep. Tells
    whether the mark is there.
    """
    rank, folder = event.get("rank"), Path(str(event.get("folder")))
    if event.get("kind") != "checkpoint_failed" or not isinstance(rank, int) or not event.get("folder"):
        return False
    if folder.parent != root or parse_temp(folder.name) is None:
        return False
    try:
        leave_mark(RealDisk(), folder, rank, str(event.get("why")))
    except OSError:
        return False  # rank 0 has its deadline
    return True
