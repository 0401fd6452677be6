"""LayoutMaster's seven loss terms for all pairs at once, against the same maths as double Python loops.

Both compute the published terms, forward and backward, of one batch of 32 posters with 25 slots, on one thread; their
values and gradients must agree before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from headway.recipes.layoutmaster.losses import Answer, Terms, iou, original_terms


def looped_terms(answer: Answer) -> Terms:
    """Return the terms as a person writes them down first: one pair after the other."""
    real = answer.mask[..., None].float()
    said, wanted, layout, target = (part * real for part in (answer.said, answer.wanted, answer.layout, answer.target))
    mask, num = answer.mask.float(), layout.shape[1]
    box, pairs = layout[..., :4], num * (num - 1) / 2
    rank = overlap = alignment = torch.zeros(len(mask))
    x, y, w, h = box.unbind(-1)
    kinds = (x, x + w, y, y + h, x + w / 2, y + h / 2)
    for i in range(num):
        for j in range(i + 1, num):
            both = mask[:, i] * mask[:, j]
            order = torch.sigmoid(layout[:, j, 4] - layout[:, i, 4])
            is_below = (target[:, i, 4] < target[:, j, 4]).float()
            rank = rank + F.binary_cross_entropy(order, is_below, reduction="none")
            wide = torch.minimum(x[:, i] + w[:, i], x[:, j] + w[:, j]) - torch.maximum(x[:, i], x[:, j])
            high = torch.minimum(y[:, i] + h[:, i], y[:, j] + h[:, j]) - torch.maximum(y[:, i], y[:, j])
            smaller = torch.minimum(w[:, i] * h[:, i], w[:, j] * h[:, j])
            overlap = overlap + wide.clamp(min=0) * high.clamp(min=0) / (smaller + 1e-8) * both
            for kind in kinds:
                gap = (kind[:, i] - kind[:, j]).abs()
                alignment = alignment + gap * torch.exp(-gap / 5.0) * both
    half = [side / 2 for side in answer.canvas]
    count = mask.sum(1) + 1e-8
    balance = ((x + w / 2).sum(1) / count - half[0]).abs() / half[0]
    balance = balance + ((y + h / 2).sum(1) / count - half[1]).abs() / half[1]
    area = w * h
    ratio = (w / (h + 1e-8) - 1.618).abs().mean(1)
    return {
        "noise": F.smooth_l1_loss(said, wanted, reduction="none").mean((1, 2)),
        "position": (box - target[..., :4]).square().mean((1, 2)) + 0.5 * (1 - iou(box, target[..., :4])).mean(1),
        "layer": (layout[..., 4] - target[..., 4]).square().mean(1) + 0.3 * rank / pairs,
        "confidence": (layout[..., 5] - target[..., 5]).square().mean(1),
        "aesthetic": 0.1 * ratio + 0.2 * area.std(1) / (area.mean(1) + 1e-8) + 0.15 * balance,
        "overlap": overlap / pairs,
        "alignment": alignment / 6,
    }


def make_answer(batch: int, slots: int, *, seed: int = 0) -> tuple[Answer, Tensor]:
    """Return a batch of random layouts near their targets, and the leaf that gradients go to."""
    dice = torch.Generator().manual_seed(seed)
    side = torch.tensor([700.0, 700.0, 300.0, 300.0, 24.0, 1.0])
    target = torch.rand(batch, slots, 6, generator=dice) * side + torch.tensor([0, 0, 20.0, 20.0, 0, 0])
    noise = torch.randn(batch, slots, 6, generator=dice) * torch.tensor([8.0, 8, 8, 8, 1, 0.1])
    layout = (target + noise).requires_grad_()
    mask = torch.arange(slots) < torch.randint(2, slots + 1, (batch, 1), generator=dice)
    said, wanted = (torch.randn(batch, slots, 6, generator=dice) for _ in range(2))
    answer = Answer(
        said=said,
        wanted=wanted,
        layout=layout,
        target=target,
        mask=mask,
        canvas=(1024, 1024),
        layers=25,
    )
    return answer, layout


def _grad(terms: Callable[[Answer], Terms], answer: Answer, leaf: Tensor) -> tuple[Tensor, Tensor]:
    values = torch.stack(list(terms(answer).values()))
    return values.detach(), torch.autograd.grad(values.sum(), leaf)[0]


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    """Compare, time both in turns, print a table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--slots", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    answer, leaf = make_answer(asked.batch, asked.slots)
    for ours, theirs in zip(_grad(original_terms, answer, leaf), _grad(looped_terms, answer, leaf), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    took: dict[str, list[float]] = {"loops": [], "at once": []}
    for _ in range(asked.rounds):
        took["loops"].append(_seconds(lambda: _grad(looped_terms, answer, leaf)))
        took["at once"].append(_seconds(lambda: _grad(original_terms, answer, leaf)))
    medians = {name: statistics.median(times) for name, times in took.items()}
    for name, median in medians.items():
        print(f"{name:10}{median * 1000:10.2f} ms   forward and backward, {asked.batch} x {asked.slots}")
    figures = {
        "speedup": round(medians["loops"] / medians["at once"], 1),
        "loops_ms": round(medians["loops"] * 1000, 3),
        "at_once_ms": round(medians["at once"] * 1000, 3),
        "batch": asked.batch,
        "slots": asked.slots,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
