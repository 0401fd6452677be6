"""Validation before the first step, made short: a model that has been followed once without gradients is not again.

Scripts like to evaluate two hundred batches before they train. What that holds is not asked, so from the second batch
of one shape on, the model answers with tensors like those of the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_iter, tree_unflatten

from headway.trace.fake_tensors import Pretence

_PLAIN = (Tensor, int, float, bool, str, type(None))


def skip_repeated(pretence: Pretence, *, is_counted: Callable[[], bool]) -> None:
    """Let outermost calls of modules without gradients be answered from memory until the peak is counted."""
    call = nn.Module.__call__
    known: dict[Any, Any] = {}
    depth = 0

    def answer(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        if depth or torch.is_grad_enabled() or is_counted():
            return call(self, *args, **kwargs)
        key = (id(self), self.training, _shape((args, kwargs)))
        if key in known:
            return _again(pretence, *known[key])
        depth += 1
        try:
            out = call(self, *args, **kwargs)
        finally:
            depth -= 1
        leaves, spec = tree_flatten(out)
        if all(isinstance(one, _PLAIN) for one in leaves):
            known[key] = [_note(pretence, one) for one in leaves], spec
        return out

    nn.Module.__call__ = answer


def _shape(given: Any) -> tuple[Any, ...]:
    return tuple(
        (tuple(one.shape), one.dtype) if isinstance(one, Tensor) else repr(one)[:80] for one in tree_iter(given)
    )


def _note(pretence: Pretence, leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    return _Like(tuple(leaf.shape), leaf.dtype, pretence.is_on(leaf))


class _Like(tuple[tuple[int, ...], torch.dtype, bool]):
    """Shape, type and place of a tensor."""

    def __new__(cls, *facts: Any) -> _Like:
        return super().__new__(cls, facts)


def _again(pretence: Pretence, leaves: list[Any], spec: Any) -> Any:
    def make(one: Any) -> Any:
        if not isinstance(one, _Like):
            return one
        shape, dtype, where = one
        with pretence.target(where):
            return pretence.make_fake(torch.empty(shape, dtype=dtype))

    return tree_unflatten([make(one) for one in leaves], spec)
