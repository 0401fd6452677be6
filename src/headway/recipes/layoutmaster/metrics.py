"""What layouts are judged by; sums over a batch, of real elements only."""

# B batch, N elements, E kinds of edges

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from headway.recipes.layoutmaster.losses import edges, gaps, intersections, iou, upper_pairs


def metric_sums(
    layout_BND: Tensor,
    target_BND: Tensor,
    start_BND: Tensor,
    mask_BN: Tensor,
    backdrop_BN: Tensor,
    canvas: tuple[int, int],
) -> dict[str, Tensor]:
    """Return the sums behind every metric; layouts in pixels."""
    layout = layout_BND.double()
    box = torch.cat((layout[..., :2], layout[..., 2:4].clamp(min=0)), -1)
    target, start, real = target_BND.double(), start_BND.double(), mask_BN.double()
    num_B = mask_BN.sum(1)
    pairs = upper_pairs(mask_BN).double()
    agree = (gaps(layout[..., 4]).sign() * gaps(target[..., 4]).sign() * pairs).sum((1, 2))
    has_pairs = num_B > 1
    moved = (_centres(box) - _centres(start[..., :4])).norm(dim=-1)
    return {
        "iou": (iou(box, target[..., :4]) * real).sum(),
        "displacement": (moved * real).sum(),
        "elements": real.sum(),
        "overlap": overlap(box, mask_BN & ~backdrop_BN).sum(),
        "alignment": alignment(box / box.new_tensor([*canvas, *canvas]), mask_BN).sum(),
        "layouts": torch.tensor(len(box), dtype=torch.float64, device=box.device),
        "order": (agree / pairs.sum((1, 2)).clamp(min=1))[has_pairs].sum(),
        "ordered": has_pairs.sum().double(),
    }


def summarize_metrics(sums: Mapping[str, float]) -> dict[str, float]:
    """Return mean IoU and displacement an element, the others a layout."""
    return {
        "mean_iou": sums["iou"] / sums["elements"],
        "overlap": sums["overlap"] / sums["layouts"],
        "alignment": sums["alignment"] / sums["layouts"],
        "order": sums["order"] / max(1.0, sums["ordered"]),
        "displacement": sums["displacement"] / sums["elements"],
    }


def overlap(box_BN4: Tensor, mask_BN: Tensor) -> Tensor:
    """Return how much of each element others cover, summed over elements and others, (B)."""
    others = (mask_BN[:, :, None] & mask_BN[:, None, :]) & ~torch.eye(
        mask_BN.size(1), dtype=torch.bool, device=mask_BN.device
    )
    area = (box_BN4[..., 2] * box_BN4[..., 3])[:, :, None]
    share = torch.where(area > 0, intersections(box_BN4) / area.clamp(min=1e-12), 0.0)
    return (share * others).sum((1, 2))


def alignment(box_BN4: Tensor, mask_BN: Tensor) -> Tensor:
    """Return -log(1 - gap) to the nearest edge of its kind of any other element, a mean over elements, (B)."""
    others = (
        mask_BN[:, :, None] & mask_BN[:, None, :] & ~torch.eye(mask_BN.size(1), dtype=torch.bool, device=mask_BN.device)
    )
    gap_BENN = gaps(edges(box_BN4)).abs().masked_fill(~others[:, None], torch.inf)
    nearest_BN = gap_BENN.amin((1, 3)).clamp(max=1 - 1e-6)
    has_other = others.any(2)
    return (-torch.log1p(-nearest_BN) * has_other).sum(1) / mask_BN.sum(1).clamp(min=1)


def _centres(box_BN4: Tensor) -> Tensor:
    return box_BN4[..., :2] + box_BN4[..., 2:] / 2
