"""The data order: a pure function of (seed, epoch, index), free of world size and micro-batch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.task.order import (
    Order,
    Share,
    after_skips,
    count_taken,
    end_of_step,
    expected_ledger,
    ledger_of,
    micro_batches,
    shuffled,
)


@given(size=st.integers(1, 3000), seed=st.integers(0, 2**63), epoch=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_an_epoch_holds_every_sample_once(size, seed, epoch):
    order = shuffled(np.arange(size), size=size, seed=seed, epoch=epoch)
    assert sorted(order.tolist()) == list(range(size))


def test_epochs_and_seeds_differ():
    first = shuffled(np.arange(500), size=500, seed=1, epoch=0)
    assert (first != shuffled(np.arange(500), size=500, seed=1, epoch=1)).mean() > 0.9
    assert (first != shuffled(np.arange(500), size=500, seed=2, epoch=0)).mean() > 0.9


def test_the_order_is_the_one_of_yesterday():
    """Old checkpoints hold a position only: another shuffle would silently train on other samples."""
    order = shuffled(np.arange(10), size=10, seed=7, epoch=3)
    assert order.tolist() == [3, 4, 2, 5, 6, 9, 1, 8, 0, 7]


def test_the_shuffle_is_close_to_uniform():
    first = [int(shuffled(np.array([0]), size=16, seed=seed, epoch=0)[0]) for seed in range(3200)]
    counts = np.bincount(first, minlength=16)
    assert ((counts - 200) ** 2 / 200).sum() < 45  # chi-squared, 15 degrees of freedom, p below 0.0001


def taken(size, world, micro, accumulation, steps, position=0, skips=()):
    """Return the (epoch, id) pairs of each step, all ranks together."""
    streams = [
        micro_batches(Order(size, 5), Share(rank, world, micro, accumulation), position, list(skips))
        for rank in range(world)
    ]
    out = []
    for _ in range(steps):
        pairs = []
        for stream in streams:
            for ids, epochs in itertools.islice(stream, accumulation):
                pairs += zip(epochs.tolist(), ids.tolist(), strict=True)
        out.append(sorted(pairs))
    return out


@pytest.mark.parametrize(("world", "micro", "accumulation"), [(1, 12, 1), (2, 3, 2), (4, 3, 1), (3, 1, 4), (1, 1, 12)])
def test_every_layout_takes_the_same_samples_each_step(world, micro, accumulation):
    assert taken(50, world, micro, accumulation, 20) == taken(50, 2, 6, 1, 20)


def test_changing_ranks_on_the_way_takes_every_sample_once_an_epoch():
    size = 60
    parts = taken(size, 2, 3, 1, 7) + taken(size, 1, 3, 2, 6, position=42) + taken(size, 2, 3, 1, 7, position=78)
    pairs = [pair for step in parts for pair in step]
    assert sorted(pairs) == [(epoch, i) for epoch in (0, 1) for i in range(size)]


def test_resume_at_a_position_goes_on_as_if_nothing_happened():
    assert taken(37, 2, 2, 1, 30)[11:] == taken(37, 2, 2, 1, 19, position=44)


def test_skipped_ranges_are_left_out_and_nothing_else():
    skips = [(8, 12)]
    assert taken(40, 2, 2, 1, 9, skips=skips) == [step for i, step in enumerate(taken(40, 2, 2, 1, 10)) if i != 2]
    assert after_skips(8, skips) == 12
    assert after_skips(7, skips) == 7


@pytest.mark.parametrize("skips", [[(8, 12)], [(8, 12), (12, 16)], [(7, 10), (9, 14), (20, 21)]])
@pytest.mark.parametrize(("world", "micro", "accumulation"), [(1, 3, 1), (2, 3, 1), (1, 5, 2), (2, 2, 4)])
def test_a_range_left_out_stays_out_with_any_batch(skips, world, micro, accumulation):
    # After a resume with another batch, a range that a roll-back left out may begin or end inside a step.
    order, batch, position, ledger = Order(40, 5), world * micro * accumulation, 0, 0
    for step in taken(40, world, micro, accumulation, 6, skips=skips):
        ids, epochs = (np.array([pair[k] for pair in step]) for k in (1, 0))
        ledger += ledger_of(ids, epochs)
        position = end_of_step(after_skips(position, skips), batch, skips)
        assert len(step) == batch and ledger % 2**64 == expected_ledger(order, position, skips)
        assert count_taken(position, skips) % batch == 0


def test_the_ledger_notices_a_lost_a_repeated_and_a_foreign_sample():
    order = Order(30, 5)
    ids, epochs = order.samples(np.arange(50))
    whole = ledger_of(ids, epochs)
    assert whole == expected_ledger(order, 50, [])
    assert ledger_of(ids[::-1], epochs[::-1]) == whole
    assert ledger_of(ids[1:], epochs[1:]) != whole
    assert ledger_of(np.append(ids, ids[0]), np.append(epochs, epochs[0])) != whole
    assert ledger_of(np.append(ids[1:], 99), np.append(epochs[1:], 0)) != whole


def test_the_ledger_of_ranks_adds_up():
    order = Order(30, 5)
    parts = 0
    for rank in range(3):
        stream = micro_batches(order, Share(rank, 3, 2, 1), 0, [])
        parts += sum(ledger_of(*next(stream)) for _ in range(10))
    assert parts & (2**64 - 1) == expected_ledger(order, 60, [])


@pytest.mark.parametrize(("in_step", "world"), [(4, 3), (8, 3), (7, 2), (5, 5), (6, 1)])
def test_fewer_ranks_share_a_step_unevenly_and_take_each_sample_once(in_step, world):
    shares = [Share(rank, world, 2, -(-in_step // world), in_step) for rank in range(world)]
    taken = np.sort(np.concatenate([share.positions(100).ravel() for share in shares]))
    assert taken.tolist() == list(range(100, 100 + 2 * in_step))
    assert [len(share.positions(0)) for share in shares] == [share.count for share in shares]
    assert {share.batch for share in shares} == {2 * in_step}
    assert max(share.count for share in shares) - min(share.count for share in shares) <= 1
