"""Operations that CUDA refuses where all must be deterministic, found in a step on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from headway.trace.storages import Tracker


def refused(run) -> set[str]:
    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    with Tracker() as tracker:
        out = run(x)
        if out.requires_grad:
            out.sum().backward()
    return tracker.refused


def ctc(x):
    scores = x.flatten(2).permute(2, 0, 1).log_softmax(-1)
    return F.ctc_loss(scores, torch.ones(2, 4, dtype=torch.long), torch.tensor([64, 64]), torch.tensor([4, 4]))


@pytest.mark.parametrize(
    ("run", "names"),
    [
        (lambda x: F.adaptive_avg_pool2d(x, 3), {"_adaptive_avg_pool2d_backward"}),
        (lambda x: F.adaptive_avg_pool2d(x, 1), set()),
        (lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), {"reflection_pad2d_backward"}),
        (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), {"upsample_bicubic2d_backward"}),
        (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), set()),
        (lambda x: F.cross_entropy(x, torch.zeros(2, 8, 8, dtype=torch.long)), {"nll_loss2d_forward"}),
        (lambda x: F.cross_entropy(x.flatten(1), torch.zeros(2, dtype=torch.long)), set()),
        (lambda x: x.cumsum(1), {"cumsum"}),
        (lambda x: torch.arange(4).cumsum(0), set()),
        (lambda x: x.median(), set()),
        (lambda x: x.median(1).values, {"median"}),
        (lambda x: F.scaled_dot_product_attention(x, x, x), set()),
        (ctc, {"_ctc_loss_backward"}),
    ],
)
def test_a_step_names_what_has_no_deterministic_kernel(run, names):
    assert refused(run) == names
