"""Tensors of a script that believes in its GPU: on the device they are fake, on the host they are real while small.

Torch without CUDA has no CUDA tensors, not even fake ones that know autograd. So whatever a script puts on a GPU is a
fake CPU tensor whose storage is *marked*: it answers `cuda:0` when asked, and what is computed from it is marked too.
Small tensors of the host keep their values, so that samplers, indices and batches work; integers keep theirs on the
device.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils import _device
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_iter, tree_map_only

from headway.trace.fake_ops import stand_in
from headway.trace.fake_values import Guesses
from headway.trace.storages import call_as_cuda

SMALL = 1 << 20
"""Elements up to which a tensor of the host is real; larger ones have a shape only."""
KNOWN = 1 << 16
"""Integers up to which a tensor on the device remembers its values."""


class Pretence:
    """Decides of every operation whether it is real, and where its results are."""

    def __init__(self, fake: FakeTensorMode, *, has_gpus: bool) -> None:
        self.fake = fake
        self.has_gpus = has_gpus
        self.guesses = Guesses()
        self.sent: list[tuple[int, ...]] = []
        """Shapes of what went from the host to the device, weights apart."""
        self.tell: Callable[[Tensor], None] = lambda _: None
        """Hears of each of them."""
        self.is_moving_weights = False
        self.depth = 0
        """How many operations are being run: inside of one, a device is what torch makes of it."""
        self._target: bool | None = None
        self._marked: weakref.WeakSet[Any] = weakref.WeakSet()

    @property
    def is_touched(self) -> bool:
        """Whether anything is on the device."""
        return bool(self._marked)

    def is_on(self, tensor: Tensor) -> bool:
        """Say whether a tensor is on the device."""
        return tensor.untyped_storage() in self._marked

    def is_marked(self, storage: Any) -> bool:
        """Say whether a storage is on the device."""
        return storage in self._marked

    @contextmanager
    def target(self, where: bool | None) -> Iterator[None]:
        """Put what is made inside on the device (or the host), whatever it is made from."""
        before, self._target = self._target, where
        try:
            yield
        finally:
            self._target = before

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run one operation of the dispatcher."""
        tensors = [one for one in tree_iter((args, kwargs)) if isinstance(one, Tensor)]
        is_fake = any(isinstance(one, FakeTensor) for one in tensors)
        if is_fake and self.guesses.has_answer(func, tensors):
            return self.guesses.answer(func, tensors)
        on_device = any(map(self.is_on, tensors)) if self._target is None else self._target
        is_read = func is torch.ops.aten._local_scalar_dense.default
        if not is_fake and (is_read or (not on_device and self._is_cheap(func, args, kwargs, tensors))):
            with _disable_current_modes():
                return func(*args, **kwargs)
        known = {one.untyped_storage() for one in tensors}
        self.depth += 1
        try:
            out = func(*args, **kwargs)
        finally:
            self.depth -= 1
        made = [one for one in tree_iter(out) if isinstance(one, Tensor)]
        if on_device:
            for one in made:
                if one.untyped_storage() not in known:
                    self._marked.add(one.untyped_storage())
        self.guesses.follow(func, args, made)
        return out

    def _is_cheap(self, func: Any, args: Any, kwargs: Any, tensors: list[Tensor]) -> bool:
        """Say whether an operation on the host may be done for real."""
        if kwargs.get("device") == torch.device("meta") or any(one.is_meta for one in tensors):
            return False
        if tensors:
            is_view = any(one.alias_info is not None for one in func._schema.returns)
            return is_view or func._schema.is_mutable or sum(one.numel() for one in tensors) <= SMALL
        made = func(*args, **kwargs)  # a fake one tells the size
        return sum(one.numel() for one in tree_iter(made) if isinstance(one, Tensor)) <= SMALL

    def make_fake(self, tensor: Tensor) -> Tensor:
        """Return a real tensor without its values: weights are never looked at."""
        if isinstance(tensor, FakeTensor) or tensor.is_meta:
            return tensor
        with torch._C.DisableTorchFunction():
            return self.fake.from_tensor(tensor)

    def send(self, tensor: Tensor, where: bool, *, dtype: Any = None, memory_format: Any = None) -> Tensor:
        """Return a copy on the device, or on the host."""
        more = {} if memory_format is None else {"memory_format": memory_format}
        with self.target(where):
            moved = tensor.to(dtype=dtype or tensor.dtype, copy=True, **more)
        if not where or self.is_moving_weights:
            return moved
        if tensor.dim():
            self.sent.append(tuple(tensor.shape))
            self.tell(moved)
        is_whole = not (tensor.dtype.is_floating_point or tensor.dtype.is_complex)
        if is_whole and type(tensor) is Tensor and tensor.numel() <= KNOWN:
            with _disable_current_modes():
                moved.constant = tensor.detach().to(moved.dtype, copy=True)
        return moved


class Devices(TorchFunctionMode):
    """Answers for the device, and takes every request for one."""

    def __init__(self, pretence: Pretence) -> None:
        super().__init__()
        self.pretence = pretence
        self._taken: dict[Any, Callable[..., Any]] = {
            Tensor.to: self._to,
            Tensor.cuda: lambda tensor, *_, **__: self._move(tensor, True),
            Tensor.cpu: lambda tensor, *_, **__: self._move(tensor, False),
            Tensor.is_cuda.__get__: pretence.is_on,
            Tensor.is_cpu.__get__: lambda tensor: not pretence.is_on(tensor),
            Tensor.get_device: lambda tensor: 0 if pretence.is_on(tensor) else -1,
            Tensor.type: self._type,
            Tensor.pin_memory: lambda tensor, *_, **__: tensor,
            Tensor.is_pinned: lambda *_, **__: False,
            Tensor.record_stream: lambda *_, **__: None,
            Tensor.numpy: self._numpy,
            Tensor.tolist: self._tolist,
            Tensor.__array__: lambda tensor, *given, **__: self._numpy(tensor).__array__(*given),
            Tensor.__format__: self._format,
            torch.nn.functional.scaled_dot_product_attention: self._attend,
        }

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one function of torch."""
        kwargs = dict(kwargs or {})
        taken = self._taken.get(func)
        if taken is not None:
            return taken(*args, **kwargs)
        standing = stand_in(func, args)
        if standing is not None and any(isinstance(one, FakeTensor) for one in tree_iter(args)):
            return standing(*args, **kwargs)
        device = kwargs.get("device")
        if device is None and func in _device._device_constructors():
            device = _device.CURRENT_DEVICE  # of `with torch.device(...)` and set_default_device
        where = self.where(device)
        if where is None:
            return self._call(func, args, kwargs)
        kwargs["device"] = torch.device("cpu")
        with self.pretence.target(where):
            out = self._call(func, args, kwargs)
        return tree_map_only(Tensor, lambda one: self._move(one, where), out)

    def _call(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        return call_as_cuda(func, args, kwargs) if self.pretence.has_gpus else func(*args, **kwargs)

    def where(self, device: Any) -> bool | None:
        """Return whether a device means the GPU; none: nothing is asked for, or what we leave alone."""
        if device is None or not self.pretence.has_gpus:
            return None
        if isinstance(device, int):
            return True
        return {"cuda": True, "cpu": False}.get(torch.device(device).type)

    def _move(self, tensor: Tensor, where: bool) -> Tensor:
        return tensor if where is self.pretence.is_on(tensor) else self.pretence.send(tensor, where)

    def _to(self, tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        where: bool | None
        other = kwargs.pop("other", args[0] if args else None)
        if isinstance(other, Tensor):
            where, dtype, layout = self.pretence.is_on(other), other.dtype, None
        else:
            copies = kwargs.pop("copy", False)
            if args and isinstance(args[0], int):
                args = ("cuda", *args[1:])
            elif isinstance(kwargs.get("device"), int):
                kwargs["device"] = "cuda"
            device, dtype, _, layout = torch._C._nn._parse_to(*args, **kwargs)
            where = self.where(device)
            if where is None and device is not None and device.type != "cpu":
                return tensor.to(*args, **kwargs)
            kwargs = {"copy": copies}
        if where is None or where is self.pretence.is_on(tensor):
            more = {} if layout is None else {"memory_format": layout}
            return tensor.to(dtype=dtype or tensor.dtype, copy=kwargs.get("copy", False), **more)
        return self.pretence.send(tensor, where, dtype=dtype, memory_format=layout)

    def answer_device(self) -> None:
        """Let fake tensors tell their device; they do not ask a mode. Only where a mode would take the answer back."""
        plain = FakeTensor.device.fget

        def device(tensor: Any) -> torch.device:
            is_asked = not self.pretence.depth and self in _get_current_function_mode_stack()
            return torch.device("cuda", 0) if is_asked and self.pretence.is_on(tensor) else plain(tensor)

        FakeTensor.device = property(device)

    def _type(self, tensor: Tensor, dtype: Any = None, *_: Any, **__: Any) -> Any:
        if dtype is None:
            name = tensor.type()
            return name.replace("torch.", "torch.cuda.", 1) if self.pretence.is_on(tensor) else name
        if isinstance(dtype, str) and dtype.startswith("torch.cuda."):
            return self._move(tensor.type(dtype.replace("cuda.", "")), True)
        return tensor.type(dtype)

    def _numpy(self, tensor: Tensor, *_: Any, **__: Any) -> Any:
        return self.pretence.guesses.values(tensor).numpy()

    def _tolist(self, tensor: Tensor) -> Any:
        return self.pretence.guesses.values(tensor).tolist()

    def _format(self, tensor: Tensor, spec: str) -> str:
        return format(tensor.item(), spec) if tensor.dim() == 0 else format(str(tensor), spec)

    def _attend(self, query: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Attend as a GPU's kernels do, which keep no table for dropout; the CPU's do."""
        if self.pretence.has_gpus:
            args = tuple(0.0 if place == 3 else one for place, one in enumerate(args))
            kwargs = {name: 0.0 if name == "dropout_p" else one for name, one in kwargs.items()}
        return torch.nn.functional.scaled_dot_product_attention(query, *args, **kwargs)
