"""A process group of one process that says it is many, and wrappers that hold what the real ones hold."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from headway.trace.fake_cuda import Ignored, nothing, returns
from headway.trace.storages import Tracker


class Untraceable(Exception):  # noqa: N818 - a word of the trace, not a fault of the script
    """A script asks for what the trace has no stand-in for."""


class Group:
    """What `init_process_group` makes here: rank 0 of so many."""

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size
        self.is_open = False


class Replica(nn.Module):
    """DistributedDataParallel as memory sees it: the module, and a bucket for every gradient."""

    tracker: Tracker

    def __init__(self, module: nn.Module, *_: Any, gradient_as_bucket_view: bool = False, **__: Any) -> None:
        super().__init__()
        self.module = module
        trained = [param for param in module.parameters() if param.requires_grad]
        # Not a weight: kept where nobody who walks the module finds it.
        self.__dict__["buckets"] = [] if gradient_as_bucket_view else [torch.empty_like(one) for one in trained]
        for bucket in self.__dict__["buckets"]:
            Replica.tracker.rename(bucket, "buckets")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Pass through."""
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Change nothing: there is nobody to wait for."""
        yield

    register_comm_hook = join = nothing


class Scattered(nn.Module):
    """DataParallel as its first GPU sees it: a part of the batch, and everybody's results."""

    gpus = 1

    def __init__(self, module: nn.Module, device_ids: Any = None, *_: Any, **__: Any) -> None:
        super().__init__()
        self.module = module
        self.num = len(device_ids) if device_ids else Scattered.gpus

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute a part and bring the whole together."""
        part = torch.utils._pytree.tree_map_only(Tensor, self._cut, (args, kwargs))
        out = self.module(*part[0], **part[1])
        return torch.utils._pytree.tree_map_only(Tensor, lambda one: self._join(one), out)

    def _cut(self, tensor: Tensor) -> Tensor:
        return tensor.chunk(self.num)[0] if tensor.dim() else tensor

    def _join(self, tensor: Tensor) -> Tensor:
        return torch.cat([tensor if tensor.dim() else tensor.unsqueeze(0)] * self.num)


def _refuse(*_: Any, **__: Any) -> Any:
    raise Untraceable("sharded")


def pretend_ranks(tracker: Tracker, *, world_size: int, num_gpus: int) -> Group:
    """Answer for `torch.distributed`, and stand for the wrappers of modules; return what the script makes of it."""
    group = Group(world_size)

    def init(*_: Any, world_size: int = -1, **__: Any) -> None:
        group.is_open = True
        if world_size > 0:
            group.world_size = world_size

    def count(*_: Any, **__: Any) -> int:
        return group.world_size if group.is_open else 1

    def wait(*_: Any, async_op: bool = False, **__: Any) -> Any:
        return Ignored() if async_op else None

    def gather_objects(found: list[Any], one: Any, *_: Any, **__: Any) -> None:
        found[:] = [one] * len(found)

    def gather(found: Any, one: Tensor, *_: Any, async_op: bool = False, **__: Any) -> Any:
        for place in found if isinstance(found, list) else ():
            place.copy_(one)
        return wait(async_op=async_op)

    answers: dict[str, Any] = {
        "init_process_group": init,
        "destroy_process_group": nothing,
        "is_initialized": lambda: group.is_open,
        "is_available": returns(True),
        "is_nccl_available": returns(True),
        "is_torchelastic_launched": returns(True),
        "get_rank": returns(0),
        "get_node_local_rank": returns(0),
        "get_world_size": count,
        "get_backend": returns("nccl"),
        "new_group": returns(None),
        "barrier": wait,
        "monitored_barrier": nothing,
        "broadcast_object_list": nothing,
        "all_gather_object": gather_objects,
        "gather_object": nothing,
        "all_gather": gather,
        "all_gather_into_tensor": wait,
        "_all_gather_base": wait,
    }
    for name in ("all_reduce", "reduce", "broadcast", "reduce_scatter", "reduce_scatter_tensor", "scatter", "gather"):
        answers[name] = wait
    for name in ("send", "recv", "isend", "irecv", "all_to_all", "all_to_all_single", "all_reduce_coalesced"):
        answers[name] = wait
    for place in (dist, dist.distributed_c10d):
        for name, answer in answers.items():
            setattr(place, name, answer)
    Replica.tracker, Scattered.gpus = tracker, max(1, num_gpus)
    for module in (nn.parallel, nn.parallel.distributed):
        module.DistributedDataParallel = Replica
    for module in (nn, nn.parallel, nn.parallel.data_parallel):
        module.DataParallel = Scattered
    nn.SyncBatchNorm.convert_sync_batchnorm = classmethod(lambda cls, module, *_: module)
    _refuse_shards()
    torch.multiprocessing.spawn = lambda fn, args=(), *_, **__: fn(0, *args)
    return group


def _refuse_shards() -> None:
    import torch.distributed.fsdp as fsdp

    for name in ("FullyShardedDataParallel", "fully_shard"):
        setattr(fsdp, name, _refuse)
