"""Noise and its removal: squared-cosine levels, a model that predicts the clean chunk, DPM-Solver++ of order two."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

_MAX_BETA = 0.999


def alphas_cumprod(num_levels: int) -> Tensor:
    """Return the share of signal left at each level (squaredcos_cap_v2), in fp64."""

    def bar(t: float) -> float:
        return math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2

    betas = [min(1 - bar((i + 1) / num_levels) / bar(i / num_levels), _MAX_BETA) for i in range(num_levels)]
    return torch.cumprod(1 - torch.tensor(betas, dtype=torch.float64, device="cpu"), dim=0)


def add_noise(clean: Tensor, noise: Tensor, levels: Tensor, kept: Tensor) -> Tensor:
    """Return chunks at their noise level; `kept` are the cumulative alphas of all levels."""
    share = kept.to(clean.device)[levels].to(torch.float32)[:, None, None]
    return share.sqrt() * clean + (1 - share).sqrt() * noise


def solver_levels(num_levels: int, steps: int) -> list[int]:
    """Return the levels the solver visits, from pure noise down; the clean end is not among them."""
    spaced = torch.linspace(0, num_levels - 1, steps + 1, dtype=torch.float64, device="cpu").round().long().tolist()
    return [int(level) for level in reversed(spaced[1:])]


def solve(denoise: Callable[[Tensor, int], Tensor], noise: Tensor, *, kept: Tensor, steps: int) -> Tensor:
    """Return clean chunks from noise by the multistep DPM-Solver++ (midpoint), second order between its two ends.

    Args:
        denoise: the model: chunk at a level, and the level, to the clean chunk.
        kept: cumulative alphas of all levels.
    """
    levels = solver_levels(len(kept), steps)
    alpha = [math.sqrt(float(kept[level])) for level in levels]
    sigma = [math.sqrt(1 - float(kept[level])) for level in levels]
    # Half the logarithm of signal over noise: the variable in which the equation is nearly straight.
    lam = [math.log(a) - math.log(s) for a, s in zip(alpha, sigma, strict=True)]
    x, before = noise, None
    for i, level in enumerate(levels):
        clean = denoise(x, level).float()
        if i + 1 == len(levels):
            return clean  # the last step goes to no noise at all, where the solution is the prediction itself
        h = lam[i + 1] - lam[i]
        target = clean
        if before is not None:
            ratio = (lam[i] - lam[i - 1]) / h
            target = clean + (clean - before) / (2 * ratio)
        x = sigma[i + 1] / sigma[i] * x - alpha[i + 1] * math.expm1(-h) * target
        before = clean
    raise AssertionError("a solver has at least one step")
