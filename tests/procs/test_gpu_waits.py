"""The host waits for the device once in a step, whatever the recipe; measured on a stand-in device."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from fakes.stand_in_device import DEVICE, Resident, count_waits, move_module

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import gpu_waits


@pytest.mark.parametrize("recipe", ["layoutmaster", "nanochat", "rdt"])
def test_the_host_waits_once_in_a_step(recipe):
    assert gpu_waits.measure([recipe], steps=1) == {recipe: 1.0}


def test_what_waits_is_counted():
    layer = torch.nn.Linear(3, 3)
    with count_waits() as waits:
        move_module(layer)
        x = Resident(torch.ones(2, 3))
        out = layer(x).sum()
        out.backward()
        assert waits.num == 0 and layer.weight.grad.device == DEVICE
        for number, wait in enumerate(
            (
                lambda: float(out.detach()),
                lambda: x.cpu(),
                lambda: x[x > 0],
                lambda: x.nonzero(),
                lambda: torch.tensor([1.0], device=DEVICE),
                lambda: torch.ones(2).to(DEVICE),
                lambda: x.tolist(),
            ),
            start=1,
        ):
            wait()
            assert waits.num == number, number
        torch.ones(2).to(DEVICE, non_blocking=True)
        x.masked_fill(x > 0, 0.0)
        assert waits.num == 7
