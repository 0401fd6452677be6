"""What frozen encoders say, kept on disk: they run once over the data, not once a step.

    <cache_dir>/features/<key>/{tokens,points,pose}.npy      a row per frame, training frames first

The key is a hash of the data's content, the encoder's weights, the precision and what the pictures are made to: any
other data or weights have another folder. All ranks fill the rows together, chunk by chunk; a chunk is marked when it
is on disk, so a stop costs one chunk. The folder gets its name when every chunk is there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import torch
from numpy.lib.format import open_memmap
from torch import Tensor, nn

from headway.messages import say
from headway.recipes.atlas.data import cache_dir
from headway.recipes.atlas.model import see
from headway.recipes.atlas.section import AtlasSection
from headway.task import Ids, hash_frozen, lock, sync, sync_tree
from headway.units import count

FORMAT = 1
NAMES = ("tokens", "points", "pose")
_CHUNK = 64
_TELL_S = 10.0
"""Between two lines of progress of one process."""

Look = Callable[[Ids], Tensor]
"""Returns the pictures of frames, as bytes (B, S, H, W, 3)."""


def feature_folder(section: AtlasSection, *, content: str, vision: nn.Module, precision: str) -> Path:
    """Return the folder of what this encoder says of this data."""
    facts = [FORMAT, content, hash_frozen(vision), precision]
    facts += [section.image_size, section.num_views, section.point_stride, section.flip_hdf5]
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:20]
    return cache_dir(section) / "features" / key


def open_features(folder: Path) -> dict[str, np.memmap]:
    """Return the features of all frames, mapped, not read."""
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in NAMES}


def make_features(
    folder: Path,
    *,
    frames: int,
    vision: nn.Module,
    stride: int,
    look: Look,
    context: Callable[[], AbstractContextManager],
) -> None:
    """Fill the folder together with every other process that wants it; return when all rows are there."""
    work = folder.with_name(f"{folder.name}.building")
    device = next(vision.parameters()).device

    def encode(ids: Ids) -> dict[str, np.ndarray]:
        with torch.no_grad(), context():
            seen = see(vision, look(ids).to(device), stride)
        return {name: seen[name].cpu().numpy() for name in NAMES}

    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock(folder.with_name(f"{folder.name}.lock")):
        if folder.is_dir():
            return
        if not (work / "ready").exists():
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            for name, rows in encode(np.zeros(1, np.int64)).items():
                open_memmap(work / f"{name}.npy", mode="w+", dtype=rows.dtype, shape=(frames, *rows.shape[1:])).flush()
            (work / "ready").touch()
    _fill(work, frames, encode)
    with lock(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            sync_tree(work)
            work.rename(folder)
            sync(folder.parent)
            # Only now: who still waits for a chunk must not find its mark gone and the folder not yet named.
            for mark in (*folder.glob("chunk-*"), folder / "ready"):
                mark.unlink()


def _fill(work: Path, frames: int, encode: Callable[[Ids], dict[str, np.ndarray]]) -> None:
    """Take every chunk that nobody has; then wait for those that others held, and take what they left."""
    chunks = -(-frames // _CHUNK)
    maps = {name: open_memmap(work / f"{name}.npy", mode="r+") for name in NAMES}
    told = time.monotonic()
    try:
        for number in (*range(chunks), *range(chunks, 2 * chunks)):
            done = _fill_chunk(work, number % chunks, frames, encode, maps, is_patient=number >= chunks)
            if done and time.monotonic() - told > _TELL_S:
                told = time.monotonic()
                sys.stdout.write(say("atlas/encoding", done=count(done), frames=count(frames)) + "\n")
                sys.stdout.flush()
    except FileNotFoundError:
        # Another process has found everything there and given the folder its name.
        if not work.with_suffix("").is_dir():
            raise


def _fill_chunk(
    work: Path,
    number: int,
    frames: int,
    encode: Callable[[Ids], dict[str, np.ndarray]],
    maps: dict[str, np.memmap],
    *,
    is_patient: bool,
) -> int:
    """Return how many frames there are up to this chunk; 0 where somebody else has it."""
    mark = work / f"chunk-{number:06d}"
    with lock(mark.with_suffix(".lock"), is_patient=is_patient) as is_mine:
        if not is_mine or mark.exists():
            return 0
        ids = np.arange(number * _CHUNK, min(frames, (number + 1) * _CHUNK), dtype=np.int64)
        for name, rows in encode(ids).items():
            maps[name][ids] = rows
            maps[name].flush()
        mark.touch()
    return int(ids[-1]) + 1
