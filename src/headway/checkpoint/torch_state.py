"""The torch half: tensors to and from checkpoints, by global name, shape and offset. Only ranks import this."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import Tensor

from headway.checkpoint.buffer import HostBuffer
from headway.checkpoint.commit import SaveFields
from headway.checkpoint.disk import Disk
from headway.checkpoint.restore import Piece, restore
from headway.checkpoint.shard import Box, Shard, box_key
from headway.checkpoint.torch_types import DTYPES
from headway.checkpoint.writer import Report, Retention, Save, Writer
from headway.errors import CheckpointError
from headway.weights.layout import Span, lay_out

__all__ = [
    "Piece",
    "Saver",
    "copy_all",
    "end_of",
    "is_written",
    "outline",
    "pieces_of_tensor",
    "pin",
    "place_pieces",
    "restore",
    "split_replicated",
]

Agree = Callable[[bool], bool]
"""Takes this rank's flag, returns whether any rank's is set; every rank calls it at the same place."""

_SPLIT_BYTES: Final = 1 << 20
"""Tensors below this are written whole by one rank."""
_AGREE_POLL_S: Final = 0.05
_PAGE_BYTES: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copies:
    """Where each piece of a save goes; the next save of the same pieces takes it as it is."""

    looks: list[Any]
    """Name, type and shapes of every piece."""
    on_cuda: bool
    targets: list[Tensor]
    """Parts of the buffer, one a piece."""
    shard: Shard


class Saver:
    """Copies a rank's state to the host, and leaves the rest to a thread."""

    def __init__(
        self,
        root: Path,
        *,
        rank: int,
        world_size: int,
        attempt: int,
        retention: Retention,
        report: Report,
        agree: Agree | None = None,
        disk: Disk | None = None,
        parts_timeout_s: float = 600.0,
        backoff_s: tuple[float, ...] = (1.0, 5.0, 20.0),
    ) -> None:
        """Sweep what dead attempts left (rank 0); `agree` defaults to the default process group, if there is one."""
        self._writer = Writer(
            root,
            rank=rank,
            world_size=world_size,
            attempt=attempt,
            retention=retention,
            report=report,
            disk=disk,
            parts_timeout_s=parts_timeout_s,
            backoff_s=backoff_s,
        )
        self._report, self._rank = report, rank
        self._agree = agree or (_any_rank if world_size > 1 and dist.is_initialized() else bool)
        self._buffer: HostBuffer | None = None
        self._pinned: int | None = None
        """Where the buffer is, once the driver was asked to pin it; 0: it did not."""
        self._copies: _Copies | None = None
        self._told_busy: int | None = None
        """The save in flight that another one was last left out for."""

    @property
    def last_committed(self) -> int | None:
        """Newest step that is committed, as far as this rank knows; rank 0 knows first."""
        return self._writer.last_committed

    def trust(self, path: Path, step: int) -> None:
        """Take a checkpoint that was read and proven as committed."""
        self._writer.trust(path, step)

    def distrust(self, skipped: Iterable[tuple[Path, CheckpointError]]) -> None:
        """Take checkpoints that did not pass verification as broken."""
        self._writer.distrust(skipped)

    def prepare(self, pieces: Iterable[Piece]) -> None:
        """Make memory and layout ready that the first save will need; the pieces are those it will be given."""
        mine = list(filter(is_written, pieces))
        if self._copies is not None or not mine:
            return
        self._find_copies(mine)
        if self._buffer is not None and self._buffer.num_bytes and not self._pinned:
            self._buffer.warm_up(lambda part: torch.frombuffer(part, dtype=torch.uint8)[::_PAGE_BYTES].zero_())

    @property
    def is_prepared(self) -> bool:
        """Whether the next save finds its memory ready."""
        return self._buffer is not None and (self._pinned is not None or self._buffer.is_warm)

    def save(
        self, step: int, pieces: Iterable[Piece], manifest_fields: Mapping[str, Any], wait: bool = False
    ) -> float | None:
        """Copy the pieces and begin to write them; return how long the caller waited, in seconds.

        Every rank calls this at the same step. None means that an older save is still being written and this one
        was left out, on every rank; with `wait`, the older one is waited for instead.
        """
        began = time.monotonic()
        fields = SaveFields(**manifest_fields)
        if not self._reserve(step, wait=wait):
            return None
        try:
            shard = self._copy_to_host(pieces)
        except BaseException:
            # The older save's bytes are in the buffer that is half overwritten now; another try of it would be proven
            # good, and would not be.
            self._writer.give_up()
            raise
        stall_s = time.monotonic() - began
        self._writer.begin(Save(step=step, shard=shard, fields=fields, stall_s=stall_s, began=began))
        return stall_s

    def poll(self) -> bool:
        """Tell whether nothing is in flight; raise what the writer could not cure by another try."""
        return self._writer.poll()

    def wait(self, deadline_s: float | None = None) -> bool:
        """Wait for the save in flight to be committed or given up; tell whether it is over."""
        return self._writer.wait(deadline_s)

    def _reserve(self, step: int, *, wait: bool) -> bool:
        """Hold the writers of all ranks, or of none: a rank that skipped alone would leave the others waiting."""
        self._writer.poll()
        while True:
            is_held = self._writer.reserve()
            if not self._agree(not is_held):
                return True
            older = self._writer.in_flight
            if is_held:
                self._writer.release()
            if not wait:
                self._tell_busy(step, older)
                return False
            self._writer.wait(_AGREE_POLL_S)

    def _tell_busy(self, step: int, older: Save | None) -> None:
        """Tell that a save was left out; once for each that is in flight: a wish by the clock comes with every step."""
        busy_step = None if older is None else older.step
        if self._rank != 0 or (older is not None and busy_step == self._told_busy):
            return
        self._told_busy = busy_step
        busy_s = None if older is None else round(time.monotonic() - older.began, 3)
        self._report({"kind": "checkpoint_skipped_busy", "step": step, "in_flight": busy_step, "busy_s": busy_s})

    def _copy_to_host(self, pieces: Iterable[Piece]) -> Shard:
        """Copy into one buffer that has the layout of the file; the buffer is kept for the next save."""
        mine = list(filter(is_written, pieces))
        copies = self._find_copies(mine)
        if self._buffer is not None:
            self._buffer.settle()
        copy_all([piece.tensor for piece in mine], copies.targets)
        return copies.shard

    def _find_copies(self, mine: list[Piece]) -> _Copies:
        """Return where the pieces go: as the last time, where they are the same."""
        on_cuda = any(piece.tensor.is_cuda for piece in mine)
        # Of 10,000 tensors every one costs more than its bytes; from one save to the next nothing of this changes.
        looks = [(piece.name, piece.tensor.dtype, piece.tensor.shape, piece.shape, piece.offset) for piece in mine]
        if self._copies is None or (self._copies.looks, self._copies.on_cuda) != (looks, on_cuda):
            self._copies = None  # its views would keep the old buffer
            self._copies = self._lay_out_copies(mine, looks, on_cuda=on_cuda)
        return self._copies

    def _lay_out_copies(self, mine: list[Piece], looks: list[Any], *, on_cuda: bool) -> _Copies:
        """Lay out the file of these pieces and find each its place in the buffer."""
        boxes, spans = outline(mine)
        buffer = self._take_buffer(end_of(spans), on_cuda=on_cuda)
        shard = Shard(boxes=boxes, spans=spans, data=memoryview(buffer.numpy()))
        targets = place_pieces(mine, spans, buffer)
        return _Copies(looks=looks, on_cuda=on_cuda, targets=targets, shard=shard)

    def _take_buffer(self, total: int, *, on_cuda: bool) -> Tensor:
        """Return memory of this size, the same as last time where that fits; for CUDA it is pinned where that works.

        Not from torch's own pinned allocator, which rounds up to a power of two: 9 GB would take 16 from every rank.
        """
        if self._buffer is None or self._buffer.num_bytes != total:
            self._unpin()
            self._buffer = None  # before the new one is made, so that both never exist side by side
            self._buffer = HostBuffer(total)
        data = self._buffer.settle()
        buffer = torch.frombuffer(data, dtype=torch.uint8) if total else torch.empty(0, dtype=torch.uint8)
        if on_cuda and total and self._pinned is None:
            self._pinned = self._pin(buffer)
        return buffer

    def _pin(self, buffer: Tensor) -> int:
        """Let GPUs write into the buffer by themselves; where the driver refuses, copies are slower and no less right.

        A fork does not copy it: its pages are wiped in the child.
        """
        code = pin(buffer)
        if code == 0:
            return buffer.data_ptr()
        self._report({"kind": "warning", "code": "engine/save-not-pinned", "facts": {"code": code}})
        return 0

    def _unpin(self) -> None:
        if self._pinned:
            torch.cuda.cudart().cudaHostUnregister(self._pinned)
        self._pinned = None


def pin(buffer: Tensor) -> int:
    """Ask the driver to pin the memory of a tensor; return its error code, 0 for none."""
    return int(torch.cuda.cudart().cudaHostRegister(buffer.data_ptr(), buffer.numel() * buffer.element_size(), 0))


def outline(pieces: Iterable[Piece]) -> tuple[dict[str, Box], dict[str, Span]]:
    """Return the boxes of a file of these pieces and each one's place in it, by key."""
    by_key: dict[str, Piece] = {}
    for piece in pieces:
        if _key(piece) in by_key:
            raise CheckpointError("checkpoint/saved-twice", name=piece.name, offset=list(piece.offset))
        by_key[_key(piece)] = piece
    boxes = {key: Box(piece.name, tuple(piece.shape), tuple(piece.offset)) for key, piece in by_key.items()}
    return boxes, lay_out({key: (_dtype(piece), tuple(piece.tensor.shape)) for key, piece in by_key.items()})


def end_of(spans: Mapping[str, Span]) -> int:
    """Return the bytes that the spans fill."""
    return max((span.end for span in spans.values()), default=0)


def place_pieces(pieces: Iterable[Piece], spans: Mapping[str, Span], buffer: Tensor) -> list[Tensor]:
    """Return each piece's place in a buffer of bytes, as a tensor of its kind and shape."""
    places = [(spans[_key(piece)], piece.tensor.dtype) for piece in pieces]
    return [buffer[span.start : span.end].view(dtype).view(span.shape) for span, dtype in places]


@torch.no_grad()
def copy_all(sources: list[Tensor], targets: list[Tensor]) -> None:
    """Copy device to host; on CUDA by a side stream, waited for once."""
    devices = {source.device for source in sources if source.is_cuda}
    streams = {device: torch.cuda.Stream(device) for device in devices}
    for device, stream in streams.items():
        # The step that is saved must be finished on the device before it is copied.
        stream.wait_stream(torch.cuda.current_stream(device))
    for source, target in zip(sources, targets, strict=True):
        if source.is_cuda:
            with torch.cuda.stream(streams[source.device]):
                target.copy_(source.detach(), non_blocking=True)
        else:
            target.copy_(source.detach())
    for stream in streams.values():
        stream.synchronize()


def pieces_of_tensor(name: str, tensor: Tensor, like: Tensor | None = None) -> list[Piece]:
    """Return what this rank holds of a global tensor: all of a plain one, its shard of a DTensor.

    `like` gives the layout when `tensor` is a plain local part, as an optimizer's state of a sharded parameter is.
    A replicated DTensor is owned by the first rank of each replica group, so that it is written once and filled
    everywhere; a plain tensor that every rank holds goes through `split_replicated` instead.
    """
    layout = tensor if like is None else like
    if type(layout) in (Tensor, torch.nn.Parameter):
        return [Piece(name, tensor, tuple(tensor.shape), (0,) * tensor.dim())]
    # Here, because a run that does not shard should not pay for this import.
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    if not isinstance(layout, DTensor):
        return [Piece(name, tensor, tuple(tensor.shape), (0,) * tensor.dim())]
    local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    if like is not None and tuple(local.shape) != tuple(layout.to_local().shape):
        # A counter beside a sharded parameter: every rank holds the same.
        return [Piece(name, local, tuple(local.shape), (0,) * local.dim(), is_owner=dist.get_rank() == 0)]
    if any(placement.is_partial() for placement in layout.placements):
        raise CheckpointError("checkpoint/partial-tensor", name=name, placements=str(layout.placements))
    shape, offset = compute_local_shape_and_global_offset(layout.shape, layout.device_mesh, layout.placements)
    assert tuple(shape) == tuple(local.shape), (name, shape, local.shape)
    at = layout.device_mesh.get_coordinate() or []
    is_owner = all(
        place == 0 for place, placement in zip(at, layout.placements, strict=True) if placement.is_replicate()
    )
    return [Piece(name, local, tuple(layout.shape), tuple(offset), is_owner=is_owner)]


def split_replicated(tensors: Mapping[str, Tensor], rank: int, world_size: int) -> list[Piece]:
    """Deal tensors that every rank holds out over the ranks by bytes, so that all write at once.

    The tensors are laid end to end and cut into equal lengths; a large tensor is cut between rows. Every rank comes
    to the same cuts from names and shapes alone.
    """
    total = sum(tensor.nbytes for tensor in tensors.values())
    pieces, start = [], 0
    for name, tensor in tensors.items():
        rows = tensor.shape[0] if tensor.dim() else 1
        if tensor.nbytes < _SPLIT_BYTES or rows < 2:
            middle = start + tensor.nbytes // 2
            low, high = (0, rows) if min(world_size - 1, middle * world_size // max(1, total)) == rank else (0, 0)
        else:
            low, high = (_row_at(total * k // world_size - start, tensor.nbytes, rows) for k in (rank, rank + 1))
        start += tensor.nbytes
        if high > low or (high == rows == 0 and rank == 0):
            local = tensor.detach()[low:high] if tensor.dim() else tensor.detach()
            pieces.append(Piece(name, local, tuple(tensor.shape), (low, *(0,) * (tensor.dim() - 1))[: tensor.dim()]))
    return pieces


def _row_at(at: int, nbytes: int, rows: int) -> int:
    return min(rows, max(0, round(at * rows / nbytes)))


def _any_rank(flag: bool) -> bool:
    """Tell whether any rank's flag is set, over the default process group."""
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    value = torch.tensor(int(flag), device=device)
    dist.all_reduce(value, dist.ReduceOp.MAX)
    return bool(value.item())


def is_written(piece: Piece) -> bool:
    is_empty_tensor = not all(piece.shape)
    return piece.is_owner and (piece.tensor.numel() > 0 or is_empty_tensor)


def _key(piece: Piece) -> str:
    return box_key(piece.name, piece.offset, is_whole=tuple(piece.tensor.shape) == tuple(piece.shape))


def _dtype(piece: Piece) -> str:
    found = DTYPES.get(piece.tensor.dtype)
    if found is None:
        raise CheckpointError("checkpoint/odd-dtype", name=piece.name, dtype=str(piece.tensor.dtype))
    return found
