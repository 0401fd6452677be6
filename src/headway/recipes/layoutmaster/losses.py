"""The seven terms of the loss, for all pairs of elements at once.

Each term is a vector over the samples of a batch, so that a sum and a count are all the loop needs. `original` is the
published maths, in pixels, with padded slots counted as elements at zero; the original's double loops over 300 pairs
took longer than a small network. `fixed` works in shares of the canvas, looks at real elements only, divides by how
many pairs there are, and asks of order and taste (aesthetic, overlap, alignment) no more than the true layout itself
has: it is zero at the truth.
"""

# B batch, N elements, D numbers of an element, E kinds of edges

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from headway.recipes.layoutmaster.diffusion import numbers_like

_GOLDEN = 1.618
_NEAR_PX = 5.0
_EPS = 1e-8
_THINNEST = 1e-2
"""Smallest height, as a share of the canvas, whose ratio is asked for: below it the slope of w/h has no end."""

Terms = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the network said of a batch, beside the truth; layouts in pixels."""

    said: Tensor
    """What it predicts: noise, or the clean layout as the network sees it."""
    wanted: Tensor
    layout: Tensor
    target: Tensor
    mask: Tensor
    canvas: tuple[int, int]
    layers: int
    """Layers are divided by this."""


def original_terms(answer: Answer) -> Terms:
    """Return the published terms, (B) each."""
    real = answer.mask[..., None].to(answer.said.dtype)
    said, wanted, layout, target = (part * real for part in (answer.said, answer.wanted, answer.layout, answer.target))
    every = torch.ones_like(answer.mask)
    pairs, real_pairs = upper_pairs(every), upper_pairs(answer.mask)
    box, layer, conf = layout[..., :4], layout[..., 4], layout[..., 5]
    order = F.binary_cross_entropy(torch.sigmoid(gaps(layer)), is_below(target[..., 4]), reduction="none")
    half_w, half_h = answer.canvas[0] / 2, answer.canvas[1] / 2
    area = box[..., 2] * box[..., 3]
    ratio = (box[..., 2] / (box[..., 3] + _EPS) - _GOLDEN).abs().mean(1)
    spread = area.std(1) / (area.mean(1) + _EPS)
    num = answer.mask.sum(1) + _EPS
    centre_x, centre_y = (box[..., 0] + box[..., 2] / 2).sum(1) / num, (box[..., 1] + box[..., 3] / 2).sum(1) / num
    balance = (centre_x - half_w).abs() / half_w + (centre_y - half_h).abs() / half_h
    gap = gaps(edges(box)).abs()
    return {
        "noise": F.smooth_l1_loss(said, wanted, reduction="none").mean((1, 2)),
        "position": (box - target[..., :4]).square().mean((1, 2)) + 0.5 * (1 - iou(box, target[..., :4])).mean(1),
        "layer": (layer - target[..., 4]).square().mean(1) + 0.3 * mean_over(order, pairs),
        "confidence": (conf - target[..., 5]).square().mean(1),
        "aesthetic": 0.1 * ratio + 0.2 * spread + 0.15 * balance,
        "overlap": (overlap_shares(box) * real_pairs).sum((1, 2)) / pairs.sum((1, 2)),
        "alignment": (gap * torch.exp(-gap / _NEAR_PX) * real_pairs[:, None]).sum((1, 2, 3)) / 6,
    }


def fixed_terms(answer: Answer) -> Terms:
    """Return the repaired terms, (B) each; all are zero when the answer is the truth."""
    mask, target = answer.mask, answer.target
    side = numbers_like((*answer.canvas, *answer.canvas, answer.layers, 1.0), answer.layout)
    layout, truth = answer.layout / side, target / side
    pairs, layer = upper_pairs(mask), layout[..., 4]
    sign = 2 * is_below(target[..., 4]) - 1
    # Cross-entropy of each pair's order, of which the truth itself, a few layers apart, has some.
    order = F.relu(F.softplus(-sign * gaps(layer) * answer.layers) - F.softplus(-sign * gaps(target[..., 4])))

    def more_than_true(term: Callable[[Tensor], Tensor]) -> Tensor:
        return F.relu(term(layout[..., :4]) - term(truth[..., :4]))

    return {
        "noise": mean_over(F.smooth_l1_loss(answer.said, answer.wanted, reduction="none").mean(2), mask),
        "position": mean_over((2 * (layout - truth))[..., :4].square().mean(2), mask)
        + 0.5 * mean_over(1 - iou(layout[..., :4], truth[..., :4]), mask),
        "layer": mean_over((2 * (layer - truth[..., 4])).square(), mask) + 0.3 * mean_over(order, pairs),
        "confidence": mean_over((2 * (layout[..., 5] - truth[..., 5])).square(), mask),
        "aesthetic": more_than_true(lambda box: _aesthetic(box, mask)),
        "overlap": more_than_true(lambda box: mean_over(overlap_shares(box), pairs)),
        "alignment": more_than_true(lambda box: _misalignment(box * side[:4], pairs)),
    }


def _aesthetic(box_BN4: Tensor, mask_BN: Tensor) -> Tensor:
    """Return the departure from golden ratio, equal areas and a centred whole; boxes in shares of the canvas."""
    w, h = box_BN4[..., 2].clamp(min=0), box_BN4[..., 3].clamp(min=_THINNEST)
    area = w * h
    mean = mean_over(area, mask_BN)
    # The root of a sum of squares has no slope at zero, which is where equal areas are.
    spread = (mean_over((area - mean[:, None]).square(), mask_BN) + _EPS).sqrt() / (mean + _EPS)
    centre = box_BN4[..., :2] + box_BN4[..., 2:] / 2
    balance = sum((2 * mean_over(centre[..., axis], mask_BN) - 1).abs() for axis in (0, 1))
    return 0.1 * mean_over((w / h - _GOLDEN).abs(), mask_BN) + 0.2 * spread + 0.15 * balance


def _misalignment(box_px_BN4: Tensor, pairs_BNN: Tensor) -> Tensor:
    """Return how many edges nearly meet: greatest for a gap of 5 pixels, nothing for 0 and for far apart."""
    near_BENN = gaps(edges(box_px_BN4)).abs() / _NEAR_PX
    return mean_over((near_BENN * torch.exp(-near_BENN)).mean(1), pairs_BNN)


def iou(one_BN4: Tensor, other_BN4: Tensor) -> Tensor:
    """Return the IoU of paired boxes x, y, w, h."""
    low = torch.maximum(one_BN4[..., :2], other_BN4[..., :2])
    high = torch.minimum(one_BN4[..., :2] + one_BN4[..., 2:], other_BN4[..., :2] + other_BN4[..., 2:])
    both = (high - low).clamp(min=0).prod(-1)
    union = one_BN4[..., 2:].prod(-1) + other_BN4[..., 2:].prod(-1) - both
    return both / (union + _EPS)


def overlap_shares(box_BN4: Tensor) -> Tensor:
    """Return the intersection of each pair over the smaller of both, (B, N, N)."""
    area = box_BN4[..., 2] * box_BN4[..., 3]
    smaller = torch.minimum(area[:, :, None], area[:, None, :])
    return intersections(box_BN4) / (smaller + _EPS)


def intersections(box_BN4: Tensor) -> Tensor:
    """Return the area each pair shares, (B, N, N)."""
    low, high = box_BN4[..., :2], box_BN4[..., :2] + box_BN4[..., 2:]
    inner = torch.minimum(high[:, :, None], high[:, None]) - torch.maximum(low[:, :, None], low[:, None])
    return inner.clamp(min=0).prod(-1)


def edges(box_BN4: Tensor) -> Tensor:
    """Return left, right, top, bottom and both centres of each box, (B, E, N)."""
    x, y, w, h = box_BN4.unbind(-1)
    return torch.stack((x, x + w, y, y + h, x + w / 2, y + h / 2), 1)


def gaps(values: Tensor) -> Tensor:
    """Return value j minus value i for each pair (…, i, j)."""
    return values[..., None, :] - values[..., :, None]


def is_below(layer_BN: Tensor) -> Tensor:
    """Return 1 for each pair (i, j) whose i lies below j, else 0."""
    return (layer_BN[:, :, None] < layer_BN[:, None, :]).to(layer_BN.dtype)


def upper_pairs(mask_BN: Tensor) -> Tensor:
    """Return which pairs i < j are of two elements of the mask, (B, N, N)."""
    return (mask_BN[:, :, None] & mask_BN[:, None, :]).triu(1)


def mean_over(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of each sample's values where the mask is set; 0 where it never is."""
    weights = mask.to(values.dtype)
    return (values * weights).flatten(1).sum(1) / weights.flatten(1).sum(1).clamp(min=1)
