"""The learning-rate range test on curves with a known answer."""

from __future__ import annotations

import math

from headway.tune import advise_rate


def curve(turn: float, *, low: float = 1e-3, high: float = 100.0, steps: int = 60):
    """A loss that falls around `turn` and rises behind three times that."""
    factors = [low * (high / low) ** (step / (steps - 1)) for step in range(steps)]
    losses = [4 - 2 / (1 + (turn / factor) ** 2) + (max(0.0, math.log(factor / (3 * turn))) ** 2) for factor in factors]
    return list(zip(factors, losses, strict=True))


def test_the_steepest_fall_is_found():
    found = advise_rate(curve(1.0))
    assert found is not None and 0.2 < found.factor < 3
    assert found.breaks_at is not None and found.breaks_at > found.factor


def test_a_loss_that_never_falls_says_nothing():
    assert advise_rate([(1e-3 * 1.2**step, 3.0) for step in range(60)]) is None
    assert advise_rate([(1.0, 3.0)]) is None


def test_a_loss_that_falls_to_the_end_does_not_break():
    found = advise_rate(curve(60.0))
    assert found is not None and found.breaks_at is None
