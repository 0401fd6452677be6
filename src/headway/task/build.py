"""Modules that must be the same on every device: built on the CPU, then moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import nn

Built = TypeVar("Built", bound="nn.Module")


def build_on_cpu(build: Callable[[], Built]) -> Built:
    """Return a module that was made on the CPU, on the device that modules are made on now.

    A GPU draws other random numbers from the same seed: an encoder that nobody has trained, and that no checkpoint
    holds, would be another one on a GPU than on the CPU. Libraries that read weights from a folder also expect a CPU.
    """
    import torch

    device = torch.get_default_device()
    if device.type in ("cpu", "meta"):
        return build()
    with torch.device("cpu"):
        built = build()
    moved: Built = built.to(device)
    return moved
