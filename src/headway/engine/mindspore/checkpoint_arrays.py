"""Arrays to and from checkpoints: the twin of checkpoint/torch_state.py for what is already on the host as numpy."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headway.checkpoint import Manifest
from headway.checkpoint.buffer import HostBuffer
from headway.checkpoint.commit import SaveFields
from headway.checkpoint.shard import Box, Shard
from headway.checkpoint.writer import Report, Retention, Save, Writer
from headway.errors import CheckpointError
from headway.weights.layout import Header, lay_out
from headway.weights.reading import open_folder, open_inside, read_at, read_header

Array = NDArray[Any]
_TYPES: Final = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I64": np.int64, "I32": np.int32}
_NAMES: Final = {np.dtype(kind): name for name, kind in _TYPES.items()}


class ArraySaver:
    """Writes a rank's share of the state; every rank holds all of it, so tensors are dealt out in turn."""

    def __init__(
        self, root: Path, *, rank: int, world_size: int, attempt: int, retention: Retention, report: Report
    ) -> None:
        self._rank, self._world_size = rank, world_size
        self._buffer: HostBuffer | None = None
        self._writer = Writer(
            root, rank=rank, world_size=world_size, attempt=attempt, retention=retention, report=report
        )

    @property
    def last_committed(self) -> int | None:
        """Newest step that is committed; rank 0 knows first."""
        return self._writer.last_committed

    def trust(self, path: Path, step: int) -> None:
        """Take a checkpoint that was read and proven as committed."""
        self._writer.trust(path, step)

    def distrust(self, skipped: Iterable[tuple[Path, CheckpointError]]) -> None:
        """Take checkpoints that did not pass verification as broken."""
        self._writer.distrust(skipped)

    def save(self, step: int, arrays: Mapping[str, Array], fields: Mapping[str, Any]) -> None:
        """Wait for an older save, copy, and begin to write. Every rank calls this at the same step."""
        began = time.monotonic()
        while not self._writer.reserve():
            self._writer.wait(0.05)
        names = sorted(arrays)[self._rank :: self._world_size]
        try:
            shard = self._lay_out({name: arrays[name] for name in names})
        except BaseException:
            # The older save's bytes are in the buffer that is half overwritten now, as in checkpoint/torch_state.py.
            self._writer.give_up()
            raise
        stall_s = time.monotonic() - began
        self._writer.begin(Save(step=step, shard=shard, fields=SaveFields(**fields), stall_s=stall_s, began=began))

    def wait(self, deadline_s: float | None = None) -> bool:
        """Wait for the save in flight to be committed or given up."""
        return self._writer.wait(deadline_s)

    def _lay_out(self, arrays: Mapping[str, Array]) -> Shard:
        """Copy arrays into one buffer that has the layout of the file; the buffer is kept for the next save."""
        spans = lay_out({name: (_NAMES[value.dtype], tuple(value.shape)) for name, value in arrays.items()})
        total = max((span.end for span in spans.values()), default=0)
        if self._buffer is None or self._buffer.num_bytes != total:
            self._buffer = None  # before the new one is made, so that both never exist side by side
            self._buffer = HostBuffer(total)
        memory = self._buffer.settle()
        data = np.frombuffer(memory, np.uint8) if total else np.empty(0, np.uint8)
        for name, span in spans.items():
            data[span.start : span.end] = np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8)
        boxes = {name: Box(name, tuple(value.shape), (0,) * value.ndim) for name, value in arrays.items()}
        return Shard(boxes=boxes, spans=spans, data=memory)


def read_arrays(path: Path, manifest: Manifest, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """Return the named tensors whole, whatever the slicing they were written with."""
    missing = sorted(set(shapes) - set(manifest.tensors))
    if missing:
        facts = {"path": path, "name": missing[0], "num": len(missing), "near": "n/a"}
        raise CheckpointError("checkpoint/tensor-missing", **facts)
    found: dict[str, Array] = {}
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder(path))
        files: dict[str, tuple[int, Header]] = {}
        for name, shape in shapes.items():
            entry = manifest.tensors[name]
            if entry.shape != shape:
                facts = {"path": path, "name": name, "have": list(entry.shape), "want": list(shape)}
                raise CheckpointError("checkpoint/tensor-shape", **facts)
            whole = np.empty(shape, _TYPES[entry.dtype])
            for piece in entry.pieces:
                if piece.file not in files:
                    fd = stack.enter_context(open_inside(folder, piece.file, where=path))
                    files[piece.file] = fd, read_header(fd, where=path / piece.file)
                fd, header = files[piece.file]
                start = header.data_start + header.spans[piece.key].start
                length = math.prod(piece.shape) * whole.itemsize
                data = read_at(fd, start, length, where=path / piece.file)
                box = tuple(slice(low, low + size) for low, size in zip(piece.offset, piece.shape, strict=True))
                whole[box] = np.frombuffer(data, whole.dtype).reshape(piece.shape)
            found[name] = whole
    return found
