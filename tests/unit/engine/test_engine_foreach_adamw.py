"""What PyTorch's AdamW writes out for the length of an update: the planner counts it (models/public/step.py)."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Allocated(TorchDispatchMode):
    """Adds up the new tensors of every operation, by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: dict[str, int] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = {id(leaf) for leaf in tree_leaves((args, kwargs or {}))}
        out = func(*args, **(kwargs or {}))
        new = [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor) and id(leaf) not in given]
        held = sum(leaf.numel() * leaf.element_size() for leaf in new)
        self.bytes[func.overloadpacket.__name__] = self.bytes.get(func.overloadpacket.__name__, 0) + held
        return out


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_the_foreach_loop_makes_one_whole_copy_of_the_second_moments_and_the_fused_kernel_none(kind):
    weights = [torch.zeros(64, 64, dtype=kind, requires_grad=True) for _ in range(4)]
    whole = sum(weight.numel() * weight.element_size() for weight in weights)
    for loop, copies in (({"foreach": True}, 1), ({"fused": True}, 0)):
        optimizer = torch.optim.AdamW(weights, **loop)
        for weight in weights:
            weight.grad = torch.ones_like(weight)
        optimizer.step()  # makes the states, which are not the update's
        with Allocated() as seen:
            optimizer.step()
        assert seen.bytes.get("_foreach_sqrt", 0) == copies * whole
        assert sum(seen.bytes.values()) <= copies * whole + 256  # beside it: scalars


def test_on_a_gpu_the_foreach_loop_is_what_pytorch_takes_by_itself():
    from torch.optim.optimizer import _default_to_fused_or_foreach
    from torch.utils._foreach_utils import _get_foreach_kernels_supported_devices

    fused, _ = _default_to_fused_or_foreach([torch.nn.Parameter(torch.zeros(2))], differentiable=False)
    assert not fused
    assert "cuda" in _get_foreach_kernels_supported_devices()
