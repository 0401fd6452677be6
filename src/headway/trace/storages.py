"""Follows every storage of a step from its birth to its end, and casts as CUDA would: what a trace is made with."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.flop_counter import flop_registry

from headway.trace.deterministic import refuses

_CUDA_IN_FP32 = {
    torch.nn.functional.layer_norm,
    torch.nn.functional.group_norm,
    torch.nn.functional.softmax,
    torch.nn.functional.log_softmax,
    torch.softmax,
    torch.log_softmax,
    torch.Tensor.softmax,
    torch.Tensor.log_softmax,
    torch.exp,
    torch.Tensor.exp,
    torch.pow,
    torch.Tensor.pow,
    torch.norm,
    torch.cumsum,
    torch.Tensor.cumsum,
}
"""What CUDA's autocast runs in fp32 and the CPU's does not."""


class CudaCasts(TorchFunctionMode):
    """Casts as CUDA's autocast does, so that a trace on the CPU keeps what a GPU would keep."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # the signature is torch's own
        return call_as_cuda(func, args, kwargs or {})


def call_as_cuda(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Run one function on the types CUDA's autocast would give it."""
    if func in (torch.nn.functional.rms_norm, torch.rms_norm):
        return FusedRmsNorm.apply(*args, *kwargs.values())
    if func in _CUDA_IN_FP32 and torch.is_autocast_enabled("cpu"):
        args = tuple(_widen(value) for value in args)
        kwargs = {name: _widen(value) for name, value in kwargs.items()}
        with torch.autocast("cpu", enabled=False):
            return func(*args, **kwargs)
    return func(*args, **kwargs)


class FusedRmsNorm(torch.autograd.Function):
    """The norm as CUDA's one kernel does it, for fake tensors: it keeps its input alone, the CPU's every step."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: Any = None) -> Tensor:
        """Return a tensor like the result."""
        ctx.save_for_backward(x, x.new_empty((*x.shape[:-1], 1), dtype=torch.float32))
        ctx.weight = weight
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Return tensors like the gradients."""
        x, _ = ctx.saved_tensors
        return torch.empty_like(x), None, None if ctx.weight is None else torch.empty_like(ctx.weight), None


def _widen(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype in (torch.bfloat16, torch.float16) else value


class Tracker(TorchDispatchMode):
    """Adds up the bytes of live storages, by what they are for, and remembers the moment of the most."""

    def __init__(
        self,
        *,
        is_cpu: bool = False,
        run: Callable[..., Any] | None = None,
        counts: Callable[[Any], bool] | None = None,
    ) -> None:
        """Start with nothing.

        Args:
            run: what runs an operation, where it is not simply run.
            counts: says of a new storage whether it is counted; none: all are.
        """
        super().__init__()
        self.run = run
        self.counts = counts
        self.is_cpu = is_cpu
        """Count what kernels of the CPU hold while they run, too."""
        self.phase = "weights"
        self.live: dict[str, int] = {}
        self.peak: dict[str, int] = {}
        self.moment = ""
        self.most = self.total = self.moved = self.flops = self.half_flops = self.ops = self.kernels = 0
        self.refused: set[str] = set()
        """Operations that CUDA refuses where all must be deterministic."""
        self._seen: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation and count what it made and what it moved."""
        if self.is_cpu:
            self._pass(_inside(func._overloadpacket, args))
        out = self.run(func, args, kwargs or {}) if self.run else func(*args, **(kwargs or {}))
        self.ops += 1
        refused = refuses(func, args, kwargs or {})
        if refused is not None:
            self.refused.add(refused)
        holder = "weights-in-compute-type" if self._casts_weights(func, args, out) else self.phase
        fresh = sum(self._hold(value, holder) for value in tree_iter(out) if isinstance(value, Tensor))
        count = flop_registry.get(func._overloadpacket)
        if count is not None:
            flops = count(*args, **(kwargs or {}), out_val=out)
            self.flops += flops
            self.kernels += 1
            self.half_flops += flops if _is_half(args) else 0
        elif fresh or func._schema.is_mutable:
            self.kernels += 1
            # A view moves nothing, a product is bound by its arithmetic; all else reads and writes memory once.
            self.moved += fresh + sum(tensor_bytes(one) for one in tree_iter((args, kwargs)) if isinstance(one, Tensor))
        return out

    def _casts_weights(self, func: Any, args: Any, out: Any) -> bool:
        """Say whether this is autocast's copy of a parameter, which lives as long as the forward's results."""
        if func._overloadpacket is not torch.ops.aten._to_copy or out.dtype.itemsize >= args[0].dtype.itemsize:
            return False
        entry = self._seen.get(args[0].untyped_storage())
        return entry is not None and entry[0] == "weights"

    def _hold(self, tensor: Tensor, holder: str) -> int:
        """Count a tensor's storage if it is new; return the bytes it added."""
        storage = tensor.untyped_storage()
        if storage in self._seen:
            return 0
        is_counted = self.counts is None or self.counts(storage)
        entry = [holder, storage.nbytes(), is_counted]
        self._seen[storage] = entry
        weakref.finalize(storage, self._drop, entry)
        if is_counted:
            self._add(*entry[:2])
        return int(entry[1])

    def has_seen(self, tensor: Tensor) -> bool:
        """Say whether a tensor's storage is known."""
        return tensor.untyped_storage() in self._seen

    def count_all(self) -> None:
        """Count from now on what was left out, too."""
        self.counts = None
        for entry in self._seen.values():
            if not entry[2]:
                entry[2] = True
                self._add(*entry[:2])

    def _add(self, holder: str, size: int) -> None:
        self.live[holder] = self.live.get(holder, 0) + size
        self.total += size
        if self.total > self.most:
            self.most, self.peak, self.moment = self.total, dict(self.live), self.phase

    def _pass(self, size: int) -> None:
        """Count what an operation holds only while it runs."""
        if size and self.total + size > self.most:
            self.most, self.moment = self.total + size, self.phase
            self.peak = {**self.live, self.phase: self.live.get(self.phase, 0) + size}

    def _drop(self, entry: list[Any]) -> None:
        holder, size, is_counted = entry
        if is_counted:
            self.live[holder] -= size
            self.total -= size

    def rename(self, tensor: Tensor, holder: str) -> None:
        """Count a live tensor under another name from now on."""
        entry = self._seen[tensor.untyped_storage()]
        if entry[2]:
            self.live[entry[0]] -= entry[1]
            self.live[holder] = self.live.get(holder, 0) + entry[1]
        entry[0] = holder

    def begin(self) -> None:
        """Forget the peak so far: what building took is gone before the first step."""
        self.most = self.moved = self.flops = self.half_flops = self.kernels = 0
        self._add("batch", 0)


def _inside(kernel: Any, args: Any) -> int:
    """Return what oneDNN's kernels hold while they run, results included, where no dispatcher sees it."""
    if kernel is torch.ops.aten.convolution_backward and args[-1][0]:
        out_channels, in_channels, *window = args[2].shape
        # In blocks of eight channels: the gradient of the input in their layout, then dense, then in ours. Windows of
        # one, and channels that make no blocks, are done in our layout from the start.
        is_blocked = max(window) > 1 and out_channels % 8 == 0 and in_channels % 8 == 0
        return 3 * tensor_bytes(args[1]) if is_blocked else 0
    if kernel is torch.ops.aten.mkldnn_rnn_layer_backward:
        entry, first, second = args[:3]
        # Both matrices again, in their own layout.
        return tensor_bytes(entry) + 3 * tensor_bytes(first) + 2 * tensor_bytes(second)
    return 0


def _is_half(args: Any) -> bool:
    first = next((one for one in tree_iter(args) if isinstance(one, Tensor)), None)
    return first is not None and first.dtype in (torch.bfloat16, torch.float16)


def tensor_bytes(tensor: Tensor) -> int:
    """Return what its elements take."""
    return tensor.numel() * tensor.element_size()
