"""Ranks, and gradients summed over them.

Replicas keep their gradients in a few flat buffers. Each parameter's gradient is a view into one, so zeroing,
norm and scaling touch a handful of tensors, and a buffer is summed over the ranks while backward still works on the
next one. This is what DistributedDataParallel does; it is written here because that class imports the compiler when
it is constructed (1.3 s of start-up and of every cold recovery), renames parameters, divides by the world size although
only the loop may divide, and hangs on parameters that got no gradient.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

_BUCKET_BYTES = 25 << 20
_WAIT_FOR_FIRST = timedelta(days=1)
"""The supervisor ends a rank that waits for one that is gone."""
_ALIGN = 64
"""Elements each gradient's place in a buffer is rounded up to, so that vector loads stay aligned."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among the others."""

    rank: int
    world_size: int
    local_rank: int
    device: torch.device
    store: dist.Store | None = None
    """Where the ranks met; none for a rank alone."""
    _words: Iterator[int] = field(default_factory=itertools.count, repr=False, compare=False)
    """Numbers of what rank 0 has said: a key of the store is never used twice, or an old word would be heard."""

    def hear_from_first(self, text: str | None) -> str:
        """Return rank 0's text on every rank, however long it takes to find it.

        Not by a collective: those give up after `parallel.timeout_s`, and to read a large checkpoint from a slow disk
        may take longer.
        """
        if self.world_size == 1:
            return text or ""
        assert self.store is not None, "several ranks have met somewhere"
        key = f"headway/word-{next(self._words)}"
        if self.rank == 0:
            self.store.set(key, text or "")
        else:
            self.store.wait([key], _WAIT_FOR_FIRST)
        return str(self.store.get(key).decode())

    def wait_for_first(self) -> None:
        """Wait until rank 0 is here, too, however long what it does alone takes: reading back a large checkpoint."""
        self.hear_from_first("")

    def gather(self, numbers: Sequence[int]) -> list[list[int]]:
        """Return every rank's numbers, of which each rank gives as many."""
        if self.world_size == 1:
            return [list(numbers)]
        own = torch.tensor(numbers, dtype=torch.int64, device=self.device)
        found = [torch.empty_like(own) for _ in range(self.world_size)]
        dist.all_gather(found, own)
        return [one.tolist() for one in found]


def join(job: dict[str, Any], *, device: torch.device, backend: str, timeout_s: float) -> Ranks:
    """Meet the other ranks through the store whose listening socket the supervisor has bound."""
    rank, world_size = job["rank"], job["world_size"]
    if world_size == 1:
        return Ranks(rank, world_size, job["local_rank"], device)
    store = _open_store(job)
    # Any user of this machine may connect to the port; whoever does not know the key can change nothing.
    met = dist.PrefixStore(job["store_key"], store) if job.get("store_key") else store
    dist.init_process_group(
        backend,
        store=met,
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=timeout_s),
        # Without it torch 2.15 guesses the device from the environment and may put two ranks on one GPU.
        device_id=device if device.type == "cuda" else None,
    )
    return Ranks(rank, world_size, job["local_rank"], device, met)


def _open_store(job: dict[str, Any]) -> dist.TCPStore:
    is_first = job["rank"] == 0
    make = partial(
        dist.TCPStore,
        job.get("master_address", "127.0.0.1"),
        job["master_port"],
        job["world_size"],
        is_master=is_first,
        master_listen_fd=job["listen_fd"] if is_first else None,
        wait_for_workers=False,
        timeout=timedelta(seconds=300),
    )
    try:
        return make()
    except RuntimeError as error:
        # A PyTorch that somebody has built without libuv refuses the default, and all ranks have the same one.
        if "libuv" not in str(error):
            raise
        return make(use_libuv=False)


class Layout(ABC):
    """How parameters lie over the ranks, and what it takes to sum their gradients."""

    is_sharded: bool

    def __init__(self, ranks: Ranks) -> None:
        self.rank, self.world_size, self.device = ranks.rank, ranks.world_size, ranks.device

    @abstractmethod
    def zero_grad(self) -> None:
        """Forget all gradients."""

    @abstractmethod
    def begin_micro(self, *, is_last: bool) -> None:
        """Prepare for a backward; only the last one of a step may talk to other ranks."""

    @abstractmethod
    def finish_backward(self) -> None:
        """Wait until the gradients are the sums over all ranks."""

    @abstractmethod
    def grad_norm(self) -> Tensor:
        """Return the global norm of the summed gradients, the same on every rank."""

    @abstractmethod
    def scale_grads(self, factor: float) -> None:
        """Multiply all gradients."""

    @abstractmethod
    def reshard(self) -> None:
        """Give back what a forward without a backward has gathered: afterwards the model holds this rank's part."""

    @abstractmethod
    def local(self, tensor: Tensor) -> Tensor:
        """Return the part of a parameter-like tensor this rank holds."""


class _Bucket:
    """A flat buffer of gradients that are summed over the ranks together."""

    def __init__(self, params: Sequence[nn.Parameter]) -> None:
        places, size = [], 0
        for param in params:
            places.append(size)
            size += -(-param.numel() // _ALIGN) * _ALIGN
        self.params = params
        self.flat = torch.zeros(size, dtype=params[0].dtype, device=params[0].device)
        self.missing = len(params)
        self.work: dist.Work | None = None
        for param, place in zip(params, places, strict=True):
            # In the parameter's own memory order (channels last, transposed): fused kernels go by memory, not by index.
            param.grad = self.flat.as_strided(param.size(), param.stride(), place)


class Replicated(Layout):
    """Every rank holds all parameters; gradients are summed in flat buffers while backward continues."""

    is_sharded = False

    def __init__(self, ranks: Ranks, params: Iterable[nn.Parameter], bucket_bytes: int = _BUCKET_BYTES) -> None:
        super().__init__(ranks)
        trainable = [param for param in params if param.requires_grad]
        for param in trainable:
            if not is_dense(param):
                param.data = param.data.contiguous()
        # Backward reaches the last parameters first, so buckets fill in that order.
        self._buckets = [_Bucket(part) for part in _portions(trainable[::-1], bucket_bytes)]
        self._flats = [bucket.flat for bucket in self._buckets]
        self._syncing, self._next = False, 0
        if ranks.world_size > 1:
            for bucket in self._buckets:
                for param in bucket.params:
                    param.register_post_accumulate_grad_hook(self._make_hook(bucket))

    def _make_hook(self, bucket: _Bucket) -> Any:  # the hook type is torch's own
        def arrived(_: Tensor) -> None:
            if self._syncing:
                bucket.missing -= 1
                if bucket.missing == 0:
                    self._send_ready()

        return arrived

    def _send_ready(self) -> None:
        """Start the sums of all complete buckets, strictly in order: every rank must call the same ones in turn."""
        while self._next < len(self._buckets) and self._buckets[self._next].missing == 0:
            bucket = self._buckets[self._next]
            bucket.work = dist.all_reduce(bucket.flat, async_op=True)
            self._next += 1

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for flat in self._flats:
            flat.zero_()

    def begin_micro(self, *, is_last: bool) -> None:
        """Count gradients as they arrive only when this backward completes the step."""
        self._syncing = is_last and self.world_size > 1
        if self._syncing:
            self._next = 0
            for bucket in self._buckets:
                bucket.missing = len(bucket.params)

    def finish_backward(self) -> None:
        """Send what no gradient arrived for, then wait for every sum."""
        if self.world_size == 1:
            return
        for bucket in self._buckets:
            bucket.missing = 0
        self._send_ready()
        for bucket in self._buckets:
            assert bucket.work is not None
            bucket.work.wait()
            bucket.work = None
        self._syncing = False

    def grad_norm(self) -> Tensor:
        """Return the global norm; every rank holds all sums, so nothing is sent."""
        if len(self._flats) == 1:
            return torch.linalg.vector_norm(self._flats[0].float())
        norms = torch._foreach_norm(self._flats)
        return torch.linalg.vector_norm(torch.stack([norm.float() for norm in norms]))

    def scale_grads(self, factor: float) -> None:
        """Multiply all gradients."""
        torch._foreach_mul_(self._flats, factor)

    def reshard(self) -> None:
        """Do nothing: nothing is sharded."""

    def local(self, tensor: Tensor) -> Tensor:
        """Return the tensor: nothing is sharded."""
        return tensor


def _portions(params: Sequence[nn.Parameter], limit: int) -> Iterable[list[nn.Parameter]]:
    """Yield runs of parameters of one type and device, none much larger than the limit."""
    portion: list[nn.Parameter] = []
    filled = 0
    for param in params:
        changed = portion and (param.dtype != portion[0].dtype or param.device != portion[0].device)
        if changed or filled >= limit:
            yield portion
            portion, filled = [], 0
        portion.append(param)
        filled += param.numel() * param.element_size()
    if portion:
        yield portion


def is_dense(tensor: Tensor) -> bool:
    """Say whether the elements fill their memory without gaps and without sharing, in whatever order."""
    expected = 1
    for stride, size in sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.size(), strict=True)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def share_weights(model: nn.Module, ranks: Ranks) -> None:
    """Give every rank rank 0's weights and buffers, so that replicas start equal whatever their seeds did."""
    if ranks.world_size == 1:
        return
    for tensor in (*model.parameters(), *model.buffers()):
        own = tensor.detach()
        # Backends send a block of memory; what lies there in another order, with gaps or shared, is sent as a copy.
        sent = own.contiguous()
        dist.broadcast(sent, src=0)
        if not own.is_contiguous() and not torch.equal(own, sent):
            own.copy_(sent)


def share_buffers(buffers: Sequence[Tensor], ranks: Ranks) -> None:
    """Give every rank rank 0's running statistics: before every step, validation, trial and save, so that all agree."""
    if ranks.world_size == 1:
        return
    # A message for each kind of number, not for each buffer: each costs every rank a wait for rank 0.
    for kind in {buffer.dtype: None for buffer in buffers}:
        same = [buffer for buffer in buffers if buffer.dtype == kind]
        flat = torch.cat([buffer.reshape(-1) for buffer in same])
        dist.broadcast(flat, src=0)
        for buffer, part in zip(same, flat.split([buffer.numel() for buffer in same]), strict=True):
            buffer.copy_(part.view_as(buffer))
