"""Many points made few without losing what matters: every pixel keeps its lowest and its highest value."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def thin(x: Floats, y: Floats, num_points: int = 600) -> tuple[Floats, Floats]:
    """Return at most `num_points` of the points, in order: first, last, and the extremes of every stretch.

    A mean would hide a spike of one step among a million; its peak is kept here, exactly where it was. A stretch
    that holds a value that is not a number keeps one such point, so that the gap stays a gap.
    """
    if len(x) <= num_points:
        return x, y
    bounds = np.linspace(0, len(x), max(1, (num_points - 2) // 3) + 1).astype(int)
    keep = {0, len(x) - 1}
    for start, end in itertools.pairwise(bounds):
        part = y[start:end]
        is_number = np.isfinite(part)
        if not is_number.all():
            keep.add(start + int(np.argmin(is_number)))
        if is_number.any():
            keep.add(start + int(np.nanargmin(np.where(is_number, part, np.nan))))
            keep.add(start + int(np.nanargmax(np.where(is_number, part, np.nan))))
    chosen = np.array(sorted(keep))
    return x[chosen], y[chosen]


def bin_means(values: Floats, num_bins: int) -> Floats:
    """Return the mean of every stretch; for areas, where the sum must stay right."""
    if len(values) <= num_bins:
        return values
    bounds = np.linspace(0, len(values), num_bins + 1).astype(int)[:-1]
    counts = np.diff([*bounds, len(values)])
    return np.asarray(np.add.reduceat(np.nan_to_num(values), bounds) / counts, dtype=np.float64)


def smooth(y: Floats) -> Floats:
    """Return the mean of each value's neighbourhood, a fiftieth of the curve wide; it has no lag on a steep slope.

    Values that are not numbers are passed over; near the ends the neighbourhood is cut the same on both sides.
    """
    num = len(y)
    is_number = np.isfinite(y)
    sums = np.concatenate([[0.0], np.cumsum(np.where(is_number, y, 0.0))])
    counts = np.concatenate([[0], np.cumsum(is_number)])
    at = np.arange(num)
    reach = np.minimum(max(2, num // 100), np.minimum(at, num - 1 - at))
    found = counts[at + reach + 1] - counts[at - reach]
    means = (sums[at + reach + 1] - sums[at - reach]) / np.maximum(found, 1)
    return np.asarray(np.where(found > 0, means, np.nan), dtype=np.float64)
