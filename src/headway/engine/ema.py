"""An exponential moving average of the weights, moved once an optimizer step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from headway.config import EmaConfig
from headway.engine.parallel import Layout


def decay_at(updates: int, config: EmaConfig) -> float:
    """Return the decay of the update after so many; it rises, so that the start is soon forgotten."""
    highest = config.decay or 0.0
    if config.power is None:
        return min(highest, (2 + updates) / (11 + updates))
    step = max(0, updates - config.update_after - 1)
    if step == 0:
        return 0.0
    return min(highest, max(config.min, 1 - (1 + step / config.inv_gamma) ** -config.power))


class Ema:
    """The average in fp32, and how many steps it has seen."""

    def __init__(self, model: nn.Module, layout: Layout, config: EmaConfig) -> None:
        self._config = config
        self._names, self._params = [], []
        for name, param in model.named_parameters():
            if not param.requires_grad:
                continue
            self._names.append(name)
            self._params.append(layout.local(param.detach()))
        self._average = [param.float().clone() for param in self._params]
        self.updates = 0

    def begin_again(self) -> None:
        """Start from the weights as they are: a run that has had no average until now."""
        self.updates = 0
        for average, param in zip(self._average, self._params, strict=True):
            average.copy_(param)

    def update(self) -> None:
        """Move the average towards the weights."""
        decay = decay_at(self.updates, self._config)
        self.updates += 1
        values = [param if param.dtype == torch.float32 else param.float() for param in self._params]
        torch._foreach_lerp_(self._average, values, 1 - decay)

    def state(self) -> dict[str, Tensor]:
        """Return the average by parameter name."""
        return dict(zip(self._names, self._average, strict=True))

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Put the average in place of the weights for as long as the block runs."""
        kept = [param.clone() for param in self._params]
        try:
            for param, average in zip(self._params, self._average, strict=True):
                param.copy_(average)
            yield
        finally:
            for param, value in zip(self._params, kept, strict=True):
                param.copy_(value)
