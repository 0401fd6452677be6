"""Compute types, and the loss scale that fp16 needs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch

_FIRST = 2.0**16
"""As torch's GradScaler begins: the first few steps overflow and halve it, which costs less than to grow for long."""
_GROW_AFTER = 2000
_LARGEST = 2.0**24
"""Exact in fp32. Without a limit, a model whose gradients vanish doubles it forever, until the scale is infinite."""


class Precision:
    """Autocast for a compute type, with a dynamic loss scale for fp16.

    The scale needs no vote: every rank sees the same summed gradients and so comes to the same verdict.
    """

    def __init__(self, name: str, device: torch.device) -> None:
        self._type = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(name)
        self._device = device.type
        self.is_scaled = name == "fp16"
        self.scale = _FIRST if self.is_scaled else 1.0
        self.good_steps = 0

    def context(self) -> AbstractContextManager[object]:
        """Return the context that forward runs in."""
        if self._type is None:
            return nullcontext()
        return torch.autocast(self._device, dtype=self._type)

    def restore(self, saved: Sequence[float] | None) -> None:
        """Take over the scale a checkpoint holds, if it was trained with one; otherwise begin with the usual one."""
        if self.is_scaled and saved is not None:
            self.scale, self.good_steps = float(saved[0]), int(saved[1])

    def overflowed(self) -> None:
        """Halve the scale after gradients that were too large for fp16; below 1 it would push small ones to zero."""
        self.scale, self.good_steps = max(1.0, self.scale / 2), 0

    def went_well(self) -> None:
        """Double the scale after a long run of finite gradients."""
        if not self.is_scaled:
            return
        self.good_steps += 1
        if self.good_steps >= _GROW_AFTER:
            self.scale, self.good_steps = min(_LARGEST, self.scale * 2), 0
