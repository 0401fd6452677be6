"""Stand-ins for operations that need values, so that a trace on fake tensors gets past them.

Each makes and keeps tensors of the sizes the real one would. Where a size depends on values (how long each sequence
of a batch is), the largest is taken: a forecast must not be too low.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes


class StandIns(TorchFunctionMode):
    """Takes over the few functions that fake tensors cannot answer."""

    def __init__(self, refused: set[str]) -> None:
        """Start with the set of operations without a deterministic kernel: those that are stood in for are added."""
        super().__init__()
        self.refused = refused

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one function, or what stands for it."""
        name = getattr(func, "__name__", "")
        if name == "__getitem__" and type(args[0]) is Tensor and args[0].dtype == torch.int64 and args[0].dim() == 1:
            with _disable_current_modes():  # the sizes of packed sequences are real, and so is one of them
                return int(args[0][args[1]]) if isinstance(args[1], int) else args[0][args[1]]
        standing = stand_in(func, args)
        self.refused.update(_REFUSED.get(name, ()))
        return standing(*args, **(kwargs or {})) if standing else func(*args, **(kwargs or {}))


def stand_in(func: Callable[..., Any], args: Any) -> Callable[..., Any] | None:
    """Return what stands for a function, or none where it can be run."""
    name = getattr(func, "__name__", "")
    is_packed = name == "lstm" and isinstance(args[1], Tensor)
    return _lstm if is_packed else _STAND_INS.get(name)


def _pack(data: Tensor, lengths: Tensor, batch_first: bool = False) -> tuple[Tensor, Tensor]:
    """Pack sequences as if each had the full length; the sizes are a real tensor, for kernels read them."""
    steps, rows = (data.shape[1], data.shape[0]) if batch_first else (data.shape[0], data.shape[1])
    flat = data.transpose(0, 1) if batch_first else data
    with _disable_current_modes():
        sizes = torch.full((steps,), rows, dtype=torch.int64)
    return flat.reshape(steps * rows, *data.shape[2:]).clone(), sizes


def _pad(
    data: Tensor, sizes: Tensor, batch_first: bool = False, padding: float = 0.0, total_length: int = -1
) -> tuple[Tensor, Tensor]:
    """Undo the packing."""
    steps = len(sizes)
    rows = data.shape[0] // steps
    out = data.reshape(steps, rows, *data.shape[1:]).clone()
    with _disable_current_modes():
        lengths = torch.full((rows,), steps, dtype=torch.int64)
    return (out.transpose(0, 1) if batch_first else out), lengths


def _lstm(data: Tensor, sizes: Tensor, hidden: Any, weights: Any, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Run an LSTM over packed sequences as one over padded ones: kernels do the same."""
    steps = len(sizes)
    padded = data.reshape(steps, data.shape[0] // steps, *data.shape[1:])
    out, last, cell = torch.lstm(padded, hidden, weights, *rest, False)
    return out.reshape(data.shape[0], *out.shape[2:]), last, cell


class _Ctc(torch.autograd.Function):
    """CTC's tables: one forward, one backward, each of (batch, time, twice the labels and one)."""

    @staticmethod
    def forward(ctx: Any, log_probs: Tensor, width: int) -> Tensor:
        steps, rows = log_probs.shape[:2]
        ctx.save_for_backward(log_probs, log_probs.new_empty(rows, steps, width), log_probs.new_empty(rows))
        return log_probs.new_empty(rows)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        log_probs, table, _ = ctx.saved_tensors
        table = torch.empty_like(table)
        return torch.empty_like(log_probs), None


def _ctc(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, *rest: Any, **named: Any
) -> Tensor:
    """Return a loss a row, or one for all where that is asked for."""
    losses: Tensor = _Ctc.apply(log_probs, 2 * targets.shape[-1] + 1)
    reduction = named.get("reduction", rest[1] if len(rest) > 1 else "mean")
    return losses if reduction in ("none", 0) else losses.sum()


_STAND_INS: dict[str, Callable[..., Any]] = {
    "_pack_padded_sequence": _pack,
    "_pad_packed_sequence": _pad,
    "ctc_loss": _ctc,
}
_REFUSED = {"ctc_loss": ("_ctc_loss_backward",)}
"""What would have run in their place and has no deterministic kernel on CUDA (`trace/deterministic.py`)."""
