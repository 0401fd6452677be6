"""The order of samples: a pure function of (seed, epoch, index).

Where a run is in its data is one integer, the position: how many samples all ranks have taken together. Any
world size, micro-batch or number of workers that starts at a position takes the same samples from there on. The
shuffle is a Feistel network over the index, so sample number p of an epoch is found without building a permutation,
and the order does not depend on a library's random stream that may change with its version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]

_ROUNDS = 6
_MASK = (1 << 64) - 1
_LEDGER_PARTS = 256


def mix(values: UInt64) -> UInt64:
    """Scramble 64-bit integers (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        values = values + np.uint64(0x9E3779B97F4A7C15)
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))


def mix_one(*parts: int) -> int:
    """Scramble a few integers into one, the same way `mix` does."""
    state = np.zeros(1, np.uint64)
    for part in parts:
        state = mix(state ^ np.uint64(part & _MASK))
    return int(state[0])


def shuffled(indexes: Int64, *, size: int, seed: int, epoch: int) -> Int64:
    """Return where the shuffle of this epoch sends each index; a bijection on [0, size)."""
    if size <= 1:
        return np.zeros_like(indexes)
    half = np.uint64(((size - 1).bit_length() + 1) // 2)
    low = np.uint64((1 << int(half)) - 1)
    keys = [np.uint64(mix_one(seed, epoch, size, turn)) for turn in range(_ROUNDS)]
    out = indexes.astype(np.uint64)
    todo = np.ones(len(out), bool)
    # The network permutes a power of four that is at most four times too large; indexes that land outside are sent
    # through again until they land inside, which keeps it a bijection on the real size.
    while todo.any():
        left, right = out[todo] >> half, out[todo] & low
        for key in keys:
            left, right = right, left ^ (mix(right ^ key) & low)
        out[todo] = (left << half) | right
        todo = out >= np.uint64(size)
    return out.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Order:
    """Samples by position over endless epochs; no sample is left out or repeated within an epoch."""

    size: int
    """Samples in the training set."""
    seed: int

    def samples(self, positions: Int64) -> tuple[Int64, Int64]:
        """Return the sample index and epoch at each position."""
        epochs = positions // self.size
        inside = positions - epochs * self.size
        ids = np.empty_like(inside)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            ids[here] = shuffled(inside[here], size=self.size, seed=self.seed, epoch=int(epoch))
        return ids, epochs


@dataclass(frozen=True, slots=True)
class Share:
    """Which samples of each step one rank takes."""

    rank: int
    world_size: int
    micro_batch: int
    accumulation: int
    """Most micro-batches that one rank adds up before a step."""
    in_step: int | None = None
    """Micro-batches of one step, all ranks, where fewer ranks than planned share them and some take one more than
    others; none: as many for each."""

    @property
    def micro_batches(self) -> int:
        """Micro-batches of one step, all ranks."""
        return self.world_size * self.accumulation if self.in_step is None else self.in_step

    @property
    def batch(self) -> int:
        """Samples of one step, all ranks."""
        return self.micro_batches * self.micro_batch

    @property
    def count(self) -> int:
        """Micro-batches that this rank takes in one step."""
        return len(range(self.rank, self.micro_batches, self.world_size))

    def positions(self, step_start: int) -> Int64:
        """Return this rank's positions of the step that starts at a position, one row a micro-batch."""
        rows = np.arange(self.rank, self.micro_batches, self.world_size, dtype=np.int64)[:, None]
        return step_start + rows * self.micro_batch + np.arange(self.micro_batch, dtype=np.int64)


def micro_batches(
    order: Order, share: Share, position: int, skips: list[tuple[int, int]]
) -> Iterator[tuple[Int64, Int64]]:
    """Yield (ids, epochs) of this rank's micro-batches from a position on, without end.

    Ids are worked out for many steps at once: the shuffle costs about as much for a thousand indexes as for one.
    """
    most = max(1, 4096 // (share.micro_batch * share.count))
    # A few at first: over a small set, thousands of samples are many epochs, and the first step would wait for them.
    ahead = min(8, most)
    while True:
        starts = []
        for _ in range(ahead):
            position = after_skips(position, skips)
            starts.append(position)
            position = end_of_step(position, share.batch, skips)
        parts = [_leave_out(share.positions(start), start, skips) for start in starts]
        places = np.stack(parts).reshape(-1, share.micro_batch)
        ids, epochs = order.samples(places.reshape(-1))
        yield from zip(ids.reshape(places.shape), epochs.reshape(places.shape), strict=True)
        ahead = min(2 * ahead, most)


def after_skips(position: int, skips: list[tuple[int, int]]) -> int:
    """Return the first position at or after this one that no skipped range covers."""
    for start, end in skips:
        if start <= position < end:
            position = end
    return position


def end_of_step(start: int, batch: int, skips: list[tuple[int, int]]) -> int:
    """Return the position behind the samples of a step that starts here.

    A range is left out batch by batch, so as a rule a step is one piece; but after a resume with another batch, a range
    that is still ahead may begin or end inside a step.
    """
    if not any(low >= start for low, _ in skips):
        return start + batch
    return int(_leave_out(np.array([start + batch - 1], dtype=np.int64), start, skips)[0]) + 1


def _leave_out(places: Int64, start: int, skips: list[tuple[int, int]]) -> Int64:
    """Move the places of a step that starts here, counted on from its start, behind the ranges that are left out."""
    covered = start
    for low, high in sorted(skips):
        low, covered = max(low, covered), max(high, covered)
        if covered > low:
            places = np.where(places >= low, places + (covered - low), places)
    return places


def count_taken(position: int, skips: list[tuple[int, int]]) -> int:
    """Return how many samples before a position were trained on: those of skipped ranges were not.

    Learning rates go by this number, so a range that is left out costs the schedule nothing.
    """
    taken, covered = position, 0
    for start, end in sorted(skips):
        taken -= max(0, min(end, position) - max(start, covered))
        covered = max(covered, end)
    return taken


def ledger_of(ids: Int64, epochs: Int64) -> int:
    """Return a fingerprint of which samples were taken in which epoch.

    It is a sum, so that ranks, micro-batches and resumed attempts can add theirs in any order, and any lost or
    repeated sample changes it.
    """
    tags = mix(mix(epochs.astype(np.uint64)) ^ ids.astype(np.uint64))
    return int(tags.sum(dtype=np.uint64))


def expected_ledger(order: Order, position: int, skips: list[tuple[int, int]]) -> int:
    """Return the fingerprint a run must have at a position, worked out from the order alone."""
    total = 0
    for start in range(0, position, 1 << 20):
        places = np.arange(start, min(position, start + (1 << 20)), dtype=np.int64)
        for lo, hi in skips:
            places = places[(places < lo) | (places >= hi)]
        total += ledger_of(*order.samples(places))
    return total & _MASK


class Ledger:
    """This rank's share of the ledger since it was last settled; takes one append a micro-batch."""

    def __init__(self) -> None:
        self._sum = 0
        self._parts: list[tuple[Int64, Int64]] = []

    def add(self, ids: Int64, epochs: Int64) -> None:
        """Note samples that were trained on. The mixing is done for many micro-batches at once."""
        self._parts.append((ids, epochs))
        if len(self._parts) >= _LEDGER_PARTS:
            self._mix()

    def peek(self) -> int:
        """Return the fingerprint of what was noted."""
        self._mix()
        return self._sum

    def settle(self) -> int:
        """Return the fingerprint of what was noted, and begin again."""
        self._mix()
        total, self._sum = self._sum, 0
        return total

    def _mix(self) -> None:
        if self._parts:
            ids, epochs = (np.concatenate(each) for each in zip(*self._parts, strict=True))
            self._sum = (self._sum + ledger_of(ids, epochs)) & _MASK
            self._parts.clear()
