"""The arithmetic of the batch, and refusals that can be pasted."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import PlanError
from headway.planner import Batch, BatchWish, keep_total, resolve_batch, suggest_batches, write_batch

COUNTS = st.none() | st.integers(1, 64)
WISHES = st.builds(
    BatchWish,
    per_device=COUNTS,
    total=st.none() | st.integers(1, 200_000),
    accumulation=COUNTS,
    unit=st.sampled_from(["samples", "tokens"]),
    world_size=st.integers(1, 16),
    tokens_per_sample=st.sampled_from([1, 7, 128, 2048]),
)


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ({"per_device": 4, "total": 32, "world_size": 2}, (4, 4, 32)),
        ({"per_device": 4, "accumulation": 3, "world_size": 2}, (4, 3, 24)),
        ({"total": 24, "accumulation": 3, "world_size": 2}, (4, 3, 24)),
        ({"per_device": 4, "total": 24, "accumulation": 3, "world_size": 2}, (4, 3, 24)),
        ({"per_device": 4, "world_size": 2}, (4, 1, 8)),
        ({"total": 24, "world_size": 2}, (12, 1, 24)),
        ({"accumulation": 3, "world_size": 2}, (8, 3, 48)),
        ({"world_size": 2}, (8, 1, 16)),
        ({"per_device": 12, "total": 49152, "unit": "tokens", "tokens_per_sample": 2048, "world_size": 2}, (12, 1, 24)),
    ],
)
def test_any_two_give_the_third_and_fewer_follow_the_rule(wish, expected):
    batch = resolve_batch(BatchWish(**wish))
    assert (batch.per_device, batch.accumulation, batch.samples) == expected


def test_the_guides_own_example_is_refused_with_three_settings_that_divide():
    names = {"batch.per_device": "device_batch_size", "batch.total": "total_batch_size"}
    wish = BatchWish(per_device=16, total=49152, unit="tokens", tokens_per_sample=2048, world_size=2, spelling=names)
    with pytest.raises(PlanError) as refused:
        resolve_batch(wish)
    assert (refused.value.code, refused.value.exit_code) == ("plan/batch-does-not-divide", 4)
    assert "49152" in refused.value.text("en") and "65536" in refused.value.text("zh")
    assert refused.value.hint("en").splitlines()[1:] == [
        "  --device_batch_size=12 --total_batch_size=49152",
        "  --device_batch_size=16 --total_batch_size=65536",
        "  --device_batch_size=6 --total_batch_size=49152",
    ]


def test_three_numbers_that_disagree_are_refused_with_accumulation_to_paste():
    with pytest.raises(PlanError) as refused:
        resolve_batch(BatchWish(per_device=4, total=32, accumulation=3, world_size=2))
    assert refused.value.code == "plan/batch-disagrees"
    assert "batch.per_device=4 batch.total=24 batch.accumulation=3" in refused.value.hint("en")
    assert "batch.per_device=4 batch.total=32 batch.accumulation=4" in refused.value.hint("en")


def test_tokens_without_tokens_are_refused():
    with pytest.raises(PlanError) as refused:
        resolve_batch(BatchWish(total=49152, unit="tokens", world_size=2))
    assert refused.value.code == "plan/no-tokens"


@given(WISHES)
def test_what_resolves_multiplies_out_and_what_does_not_is_refused_with_what_does(wish):
    try:
        batch = resolve_batch(wish)
    except PlanError as refused:
        choices = suggest_batches(wish)
        assert len(set(choices)) == 3
        for choice in choices:
            assert resolve_batch(paste(wish, choice)) == choice
            assert write_batch(wish, choice) in refused.hint("en")
        return
    assert batch.samples == wish.world_size * batch.per_device * batch.accumulation
    assert batch.tokens == batch.samples * (wish.tokens_per_sample or 0)
    if wish.total is not None:
        assert wish.total == (batch.samples if wish.unit == "samples" else batch.tokens)
    assert wish.per_device in (None, batch.per_device)
    assert wish.accumulation in (None, batch.accumulation)


def paste(wish: BatchWish, choice: Batch) -> BatchWish:
    """Return the wish after the user has pasted the line, word for word."""
    words = dict(re.findall(r"batch\.(\w+)=(\d+)", write_batch(wish, choice)))
    asked = {"per_device": wish.per_device, "total": wish.total, "accumulation": wish.accumulation}
    return BatchWish(
        **{**asked, **{key: int(value) for key, value in words.items()}},
        unit=wish.unit,
        world_size=wish.world_size,
        tokens_per_sample=wish.tokens_per_sample,
    )


@given(st.integers(1, 64), st.integers(1, 16), st.integers(1, 8), st.integers(1, 16))
def test_another_number_of_ranks_keeps_the_total_or_is_refused(per_device, accumulation, before, after):
    batch = resolve_batch(BatchWish(per_device=per_device, accumulation=accumulation, world_size=before))
    if batch.samples % after:
        with pytest.raises(PlanError):
            keep_total(batch, world_size=after)
        return
    kept = keep_total(batch, world_size=after)
    assert kept.samples == batch.samples == after * kept.per_device * kept.accumulation
    assert kept.per_device <= per_device


def test_a_total_of_any_size_is_refused_without_a_long_search():
    with pytest.raises(PlanError):
        resolve_batch(BatchWish(per_device=7, total=10**18, world_size=2))
