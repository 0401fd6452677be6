"""A device that is not there: its tensors hold their values on the CPU, and the host's waits for it are counted.

What runs on them is the real code with real values, so a step takes its real way. Counted is what makes the host wait
for a GPU: a value that is read, a shape that depends on values, a copy in either direction that is waited for.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

# Of the devices that have no kernels here, the only one whose backward runs in the caller's thread, as the CPU's does.
DEVICE = torch.device("lazy", 0)
_READS = {"_local_scalar_dense", "equal", "is_nonzero"}
_SHAPES = {
    "nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "bincount",
}  # fmt: skip
_MAKERS = (torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor)


class Resident(Tensor):
    """A tensor on the device."""

    @staticmethod
    def __new__(cls, held: Tensor) -> Resident:
        """Wrap a tensor of the CPU."""
        made = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=DEVICE,
        )
        made.held = held.detach()
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation outside of a count."""
        return _run(func, args, kwargs or {})


class HostWaits(TorchDispatchMode):
    """Counts, while it is on, where the host waits."""

    def __init__(self) -> None:
        super().__init__()
        self.places: Counter[str] = Counter()

    @property
    def num(self) -> int:
        """Waits so far."""
        return self.places.total()

    def note(self, what: str) -> None:
        """Count a wait, by the line of Headway that asked for it."""
        frames = [one for one in traceback.extract_stack() if "/headway/" in one.filename]
        line = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "elsewhere"
        self.places[f"{line} {what}"] += 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation and count it if it waits."""
        kwargs = kwargs or {}
        if _is_wait(func, args, kwargs):
            self.note(func._overloadpacket.__name__)
        return _run(func, args, kwargs)


class _Makers(TorchFunctionMode):
    """Makes tensors from Python's numbers, which torch does with all modes off."""

    def __init__(self, waits: HostWaits) -> None:
        super().__init__()
        self.waits = waits

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        if func in (Tensor.tolist, Tensor.numpy) and isinstance(args[0], Resident):  # never reaches the dispatch
            self.waits.note(func.__name__)
            return func(args[0].held)
        if func in _MAKERS and device is not None and torch.device(device).type == DEVICE.type:
            if isinstance(args[0], Resident):
                return func(*args, **kwargs)
            self.waits.note(func.__name__)
            return Resident(func(*args, **{**kwargs, "device": "cpu"}))
        return func(*args, **kwargs)


@contextmanager
def count_waits() -> Iterator[HostWaits]:
    """Run what is inside with the device, and count."""
    is_on, autocast = torch.is_autocast_enabled, torch.autocast
    casts = {
        "is_autocast_enabled": lambda kind="cpu": is_on("cpu" if kind == DEVICE.type else kind),
        "autocast": lambda kind, *args, **kwargs: autocast("cpu" if kind == DEVICE.type else kind, *args, **kwargs),
    }
    with mock.patch.multiple(torch, **casts), HostWaits() as waits, _Makers(waits):
        yield waits


def move_module(module: nn.Module) -> None:
    """Put a module's parameters and buffers on the device; those that are tied stay tied."""
    moved: dict[Tensor, nn.Parameter] = {}
    for part in module.modules():
        for name, param in part._parameters.items():
            if param is not None:
                if param not in moved:
                    moved[param] = nn.Parameter(Resident(param.detach()), requires_grad=param.requires_grad)
                part._parameters[name] = moved[param]
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = Resident(buffer)


def _is_wait(func: Any, args: Any, kwargs: Any) -> bool:
    name = func._overloadpacket.__name__
    here = [isinstance(one, Resident) for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
    if name in ("_to_copy", "copy_"):
        return _is_waited_copy(name, args, kwargs)
    if not any(here):
        return False
    if name in ("index", "index_put", "index_put_", "_unsafe_index"):
        masks = [one for one in args[1] if one is not None and one.dtype in (torch.bool, torch.uint8)]
        # One number behind a mask is filled in place; anything else needs to know where the mask is set.
        return bool(masks) and not (name.startswith("index_put") and args[2].numel() == 1)
    if name == "repeat_interleave":
        return kwargs.get("output_size") is None
    if name == "_ctc_loss" and func._overloadname == "Tensor":
        return any(isinstance(one, Resident) for one in args[1:4])  # the host reads the lengths
    return name in _READS or name in _SHAPES


def _is_waited_copy(name: str, args: Any, kwargs: Any) -> bool:
    """Say whether a copy crosses between host and device and is waited for."""
    if name == "copy_":
        crosses = isinstance(args[0], Resident) != isinstance(args[1], Resident)
        return crosses and not (args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
    device = kwargs.get("device")
    if device is None:
        return False
    crosses = isinstance(args[0], Resident) != (torch.device(device).type == DEVICE.type)
    return crosses and not kwargs.get("non_blocking", False)


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation on the values, and say where its result is."""
    kwargs = dict(kwargs)
    is_here = any(isinstance(one, Resident) for one in tree_leaves((args, kwargs)))
    device = kwargs.get("device")
    if device is not None:
        is_here = torch.device(device).type == DEVICE.type
        kwargs["device"] = torch.device("cpu")
    if kwargs.get("pin_memory"):
        kwargs["pin_memory"] = False
    if func._overloadpacket.__name__ == "_to_copy" and is_here != isinstance(args[0], Resident):
        kwargs.setdefault("dtype", args[0].dtype)  # or it would be one tensor in two places
    out = func(*tree_map(_value, args), **tree_map(_value, kwargs))
    if func._overloadpacket.__name__ in ("_pack_padded_sequence", "_pad_packed_sequence"):
        return Resident(out[0]), out[1]  # sizes and lengths are the host's
    if func._schema.is_mutable:
        return tree_map(lambda one: _same(one, args, kwargs) if isinstance(one, Tensor) else one, out)
    return tree_map(lambda one: Resident(one) if is_here and isinstance(one, Tensor) else one, out)


def _value(one: Any) -> Any:
    return one.held if isinstance(one, Resident) else one


def _same(made: Tensor, args: Any, kwargs: Any) -> Tensor:
    """Return the argument whose values were changed, or a new tensor beside it."""
    given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
    for one in given:
        if _value(one) is made:
            return one
    return Resident(made) if any(isinstance(one, Resident) for one in given) else made
