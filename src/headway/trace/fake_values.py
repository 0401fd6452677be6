"""Values that a trace does not have, guessed so that a script continues.

Every number is one: a loss of one is finite, one is a legal index and divides. A comparison with a number is made with
one; nothing is infinite and nothing is not a number. Tensors that still know their values answer with them.
"""

from __future__ import annotations

import operator
import weakref
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

_aten = torch.ops.aten
_COMPARE = {
    _aten.eq: operator.eq,
    _aten.ne: operator.ne,
    _aten.lt: operator.lt,
    _aten.le: operator.le,
    _aten.gt: operator.gt,
    _aten.ge: operator.ge,
}


class Guesses:
    """Answers for tensors without values."""

    def __init__(self) -> None:
        self._false: weakref.WeakSet[Any] = weakref.WeakSet()
        """Storages of what is held to be false."""

    def has_answer(self, func: Any, tensors: list[Tensor]) -> bool:
        """Say whether an operation asks for a value, and the value is not known."""
        if func._overloadpacket is _aten._local_scalar_dense:
            return getattr(tensors[0], "constant", None) is None
        return func._overloadpacket in (_aten.equal, _aten.is_nonzero, _aten._is_any_true, _aten._is_all_true)

    def answer(self, func: Any, tensors: list[Tensor]) -> Any:
        """Return the value asked for."""
        if func._overloadpacket is _aten.equal:
            return tensors[0].shape == tensors[1].shape
        return self._one(tensors[0])

    def follow(self, func: Any, args: Any, made: list[Tensor]) -> None:
        """Note what a comparison comes to, and what is made of it."""
        if len(made) != 1 or made[0].dtype is not torch.bool:
            return
        if not self._truth(func._overloadpacket, args):
            self._false.add(made[0].untyped_storage())

    def values(self, tensor: Tensor) -> Tensor:
        """Return a real tensor of the values, known or guessed."""
        if not isinstance(tensor, FakeTensor):
            return tensor.detach()
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            if tensor.constant is not None:
                return tensor.constant
            return torch.full(tensor.shape, self._one(tensor), dtype=tensor.dtype)

    def _one(self, tensor: Tensor) -> Any:
        if tensor.dtype is torch.bool:
            return tensor.untyped_storage() not in self._false
        return 1.0 if tensor.dtype.is_floating_point else 1

    def _truth(self, kernel: Any, args: Any) -> bool:
        if kernel in (_aten.isnan, _aten.isinf, _aten.isneginf, _aten.isposinf):
            return False
        if kernel in _COMPARE:
            first, second = (self._one(one) if isinstance(one, Tensor) else one for one in args[:2])
            return bool(_COMPARE[kernel](first, second))
        held = [self._one(one) for one in args if isinstance(one, Tensor) and one.dtype is torch.bool]
        if kernel in (_aten.logical_not, _aten.bitwise_not):
            return not held[0] if held else False
        if kernel in (_aten.bitwise_or, _aten.logical_or):
            return any(held)
        return all(held)
