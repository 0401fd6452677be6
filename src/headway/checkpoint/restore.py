"""Filling tensors from a checkpoint, whatever the slicing it was written with."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import torch
from torch import Tensor

from headway.checkpoint.manifest import Manifest, PieceEntry, TensorEntry, overlap
from headway.checkpoint.torch_types import DTYPES
from headway.errors import CheckpointError
from headway.weights.layout import ITEM_BYTES, Header
from headway.weights.reading import fill_from, open_folder, open_inside, read_header

_SLAB_BYTES: Final = 64 << 20
"""Most bytes held on the host between the file and a tensor; a row larger than this is held whole."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What one rank holds of a global tensor."""

    name: str
    tensor: Tensor
    """The local part; filled in place by `restore`."""
    shape: tuple[int, ...]
    """Of the whole tensor."""
    offset: tuple[int, ...]
    """Where the local part begins in the whole."""
    is_owner: bool = True
    """Whether this rank writes it; of several ranks that hold the same box, one is the owner."""


class Source(Protocol):
    """Where the bytes of saved pieces are: the files of a checkpoint, or memory."""

    def read(self, piece: PieceEntry, start: int, into: memoryview) -> None:
        """Fill bytes from a place in a saved piece."""


def restore(
    path: Path,
    manifest: Manifest,
    pieces: Iterable[Piece],
    *,
    only: str = "",
    partial: bool = False,
    source: Source | None = None,
) -> None:
    """Fill every piece's tensor from a verified checkpoint, reading only the bytes that it needs.

    Args:
        path: the checkpoint's folder.
        manifest: what `verify_checkpoint` or `read_manifest` returned for it.
        pieces: the tensors to fill; several pieces may be of the same global tensor.
        only: prefix of the names this run wants, `model/` for weights alone.
        partial: this rank wants only some of the names; without it a name left over is refused.
        source: where the bytes are, if not in the folder's files.
    """
    wanted = list(pieces)
    _check_names(path, manifest, wanted, only=only, partial=partial)
    for piece in wanted:
        _check_piece(path, piece, manifest.tensors[piece.name])
    with nullcontext(source) if source is not None else _Files(path) as files, torch.no_grad():
        for piece in wanted:
            for saved in manifest.tensors[piece.name].pieces:
                _fill(piece, saved, files)


class _Files:
    """Shards, opened once each."""

    def __init__(self, path: Path) -> None:
        self._path, self._stack = path, ExitStack()
        self._open: dict[str, tuple[int, Header]] = {}

    def __enter__(self) -> _Files:
        self._folder = self._stack.enter_context(open_folder(self._path))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, piece: PieceEntry, start: int, into: memoryview) -> None:
        """Fill bytes from a place in a saved piece."""
        if piece.file not in self._open:
            fd = self._stack.enter_context(open_inside(self._folder, piece.file, where=self._path))
            self._open[piece.file] = fd, read_header(fd, where=self._path / piece.file)
        fd, header = self._open[piece.file]
        at = header.data_start + header.spans[piece.key].start + start
        fill_from(fd, at, into, where=self._path / piece.file)


def _fill(piece: Piece, saved: PieceEntry, files: Source) -> None:
    """Copy the box a wanted piece shares with a saved one, slab by slab of rows."""
    if not piece.shape:
        piece.tensor.copy_(_read_rows(piece.tensor.dtype, saved, files, 0, 1).view(()))
        return
    shared = overlap(piece.offset, tuple(piece.tensor.shape), saved.offset, saved.shape)
    if shared is None:
        return
    at, size = shared
    inside = [slice(a - s, a - s + n) for a, s, n in zip(at, saved.offset, size, strict=True)]
    target = [slice(a - p, a - p + n) for a, p, n in zip(at, piece.offset, size, strict=True)]
    row_bytes = piece.tensor.dtype.itemsize * math.prod(saved.shape[1:])
    step = max(1, _SLAB_BYTES // row_bytes)
    for low in range(inside[0].start, inside[0].stop, step):
        high = min(low + step, inside[0].stop)
        rows = _read_rows(piece.tensor.dtype, saved, files, low, high)
        first = target[0].start + low - inside[0].start
        into = piece.tensor.detach()[(slice(first, first + high - low), *target[1:])]
        into.copy_(rows[(slice(None), *inside[1:])])


def _read_rows(dtype: torch.dtype, saved: PieceEntry, files: Source, low: int, high: int) -> Tensor:
    shape = saved.shape or (1,)
    row_bytes = dtype.itemsize * math.prod(shape[1:])
    data = torch.empty((high - low) * row_bytes, dtype=torch.uint8)
    files.read(saved, low * row_bytes, memoryview(data.numpy()))
    return data.view(dtype).view(high - low, *shape[1:])


def _check_names(path: Path, manifest: Manifest, wanted: Sequence[Piece], *, only: str, partial: bool) -> None:
    names = {piece.name for piece in wanted}
    have = {name for name in manifest.tensors if name.startswith(only)}
    if missing := sorted(names - have):
        raise CheckpointError(
            "checkpoint/tensor-missing",
            path=path,
            name=missing[0],
            num=len(missing),
            near=_nearest(missing[0], have - names or have),
        )
    if not partial and (extra := sorted(have - names)):
        raise CheckpointError(
            "checkpoint/tensor-extra", path=path, name=extra[0], num=len(extra), near=_nearest(extra[0], names)
        )


def _check_piece(path: Path, piece: Piece, saved: TensorEntry) -> None:
    if tuple(piece.shape) != saved.shape:
        raise CheckpointError(
            "checkpoint/tensor-shape", path=path, name=piece.name, have=list(saved.shape), want=list(piece.shape)
        )
    dtype = DTYPES.get(piece.tensor.dtype, str(piece.tensor.dtype))
    if dtype != saved.dtype:
        raise CheckpointError("checkpoint/tensor-dtype", path=path, name=piece.name, have=saved.dtype, want=dtype)
    assert ITEM_BYTES[saved.dtype] == piece.tensor.dtype.itemsize


def _nearest(name: str, names: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.0)
    return found[0] if found else "n/a"
