"""The learning-rate range test: where the loss falls fastest while the rate rises, and where it breaks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SWEEP = {"low": 1e-3, "high": 100.0, "steps": 60}
"""Factors on the config's own rate, and optimizer steps between them."""
_SMOOTH = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class RateAdvice:
    """What the test says of `lr.base`."""

    factor: float
    """Of the config's own rate, where the loss falls fastest."""
    breaks_at: float | None
    """Factor from which the loss rises permanently; none: it never did."""


def advise_rate(curve: Sequence[tuple[float, float]]) -> RateAdvice | None:
    """Return the factor at the steepest fall, at most a third of the one with the least loss; none: it never fell."""
    if len(curve) < 8:
        return None
    factors = [factor for factor, _ in curve]
    losses = _smooth([loss for _, loss in curve])
    lowest = min(range(len(losses)), key=losses.__getitem__)
    if lowest < 2 or losses[lowest] >= 0.995 * losses[0]:
        return None
    logs = [math.log(factor) for factor in factors]
    # Over several steps: one step's loss is mostly the luck of its batch.
    slopes = {
        place: (losses[place + 2] - losses[place - 2]) / (logs[place + 2] - logs[place - 2])
        for place in range(2, min(lowest + 1, len(losses) - 2))
    }
    steepest = min(slopes, key=slopes.__getitem__) if slopes else lowest
    ends_low = lowest >= len(curve) - 3
    return RateAdvice(
        factor=min(factors[steepest], factors[lowest] / 3), breaks_at=None if ends_low else factors[lowest]
    )


def _smooth(losses: Sequence[float]) -> list[float]:
    """Return the running mean, corrected for its start."""
    mean, out = 0.0, []
    for number, loss in enumerate(losses, 1):
        mean = _SMOOTH * mean + (1 - _SMOOTH) * loss
        out.append(mean / (1 - _SMOOTH**number))
    return out
