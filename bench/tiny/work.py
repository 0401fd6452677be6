"""The network and the data, in plain torch."""

from __future__ import annotations

import torch
from torch import nn

INPUTS, CLASSES = 32, 10


def make_model(width: int = 64) -> nn.Module:
    """Return three linear layers."""
    return nn.Sequential(
        nn.Linear(INPUTS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES)
    )


def make_data(samples: int = 4096) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and labels that a small network can learn."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(samples, INPUTS, generator=generator)
    return x, (x @ torch.randn(INPUTS, CLASSES, generator=generator)).argmax(1)
