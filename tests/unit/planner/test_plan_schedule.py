"""The learning rate by samples: shapes, warm-up, and freedom from the batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.config import LrConfig
from headway.planner import LrSchedule, draw_curve, lr_at, lr_factor


def schedule(**more) -> LrSchedule:
    values = {"shape": "constant", "batch_samples": 10, "total_samples": 1000, "warmup_samples": 0}
    values |= {"decay": 1.0, "final": 0.0, "milestones": (), "gamma": 0.1}
    return LrSchedule(**{**values, **more})


def curve(one: LrSchedule) -> list[float]:
    return [lr_at(samples, one) for samples in range(0, one.total_samples, one.batch_samples)]


def test_constant_is_one():
    assert set(curve(schedule())) == {1.0}


def test_linear_falls_over_the_last_share_and_wastes_no_step():
    """The published rule: 1 until the warm-down, then (steps left) / (steps of warm-down)."""
    rates = curve(schedule(shape="linear", decay=0.2))
    expected = [1.0] * 81 + [(100 - step) / 20 for step in range(81, 100)]
    assert rates == pytest.approx(expected)
    assert rates[-1] > 0


def test_linear_ends_above_zero_when_asked_to():
    assert lr_at(1000, schedule(shape="linear", decay=0.2, final=0.1)) == pytest.approx(0.1)


def test_cosine_starts_at_one_passes_the_middle_and_ends_at_final():
    one = schedule(shape="cosine", final=0.2)
    assert [lr_at(at, one) for at in (0, 500, 1000)] == pytest.approx([1.0, 0.6, 0.2])


def test_cosine_falls_from_the_end_of_warm_up():
    one = schedule(shape="cosine", warmup_samples=200)
    assert lr_at(200, one) == pytest.approx(1.0)
    assert lr_at(600, one) == pytest.approx(0.5)


def test_multistep_multiplies_at_each_milestone():
    one = schedule(shape="multistep", milestones=(500.0, 750.0))
    assert [lr_at(at, one) for at in (0, 499, 500, 749, 750)] == pytest.approx([1, 1, 0.1, 0.1, 0.01])


def test_warm_up_rises_from_the_first_step_and_reaches_the_full_rate():
    rates = curve(schedule(warmup_samples=50))
    assert rates[:6] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.0])


@given(
    st.sampled_from(["constant", "cosine", "linear", "multistep"]),
    st.integers(1, 10**9),
    st.integers(1, 10**6),
    st.integers(0, 10**9),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1.2),
)
def test_the_factor_stays_between_zero_and_one_everywhere(shape, total, batch, warmup, decay, final, at):
    one = schedule(
        shape=shape, total_samples=total, batch_samples=batch, warmup_samples=warmup, decay=decay, final=final
    )
    assert 0.0 <= lr_at(int(at * total), one) <= 1.0 + 1e-9
    assert len(draw_curve(one)) == 16


@pytest.mark.parametrize("batch", [5, 20, 40])
def test_the_shape_after_warm_up_does_not_depend_on_the_batch(batch):
    for shape in ("cosine", "linear", "multistep"):
        one = schedule(shape=shape, milestones=(400.0,), batch_samples=10)
        other = schedule(shape=shape, milestones=(400.0,), batch_samples=batch)
        assert [lr_at(at, one) for at in range(0, 1000, 40)] == [lr_at(at, other) for at in range(0, 1000, 40)]


@pytest.mark.parametrize(
    ("scaling", "base", "expected"),
    [("none", 64, 1.0), ("linear", 64, 4.0), ("sqrt", 64, 2.0), ("linear", None, 1.0), ("linear", 512, 0.5)],
)
def test_the_rate_follows_the_ratio_of_batches(scaling, base, expected):
    assert lr_factor(LrConfig(scaling=scaling, base_batch=base), batch=256) == pytest.approx(expected)


def test_the_curve_is_drawn_as_it_runs():
    drawn = draw_curve(schedule(shape="linear", decay=0.5))
    assert drawn[:8] == "█" * 8
    assert drawn[-1] == "▁"


@pytest.mark.parametrize("shape", ["cosine", "linear", "constant"])
def test_a_warm_up_longer_than_the_run_rises_to_the_last_step_and_is_not_zero(shape):
    rates = curve(schedule(shape=shape, warmup_samples=4000, decay=0.0))
    assert rates[:2] == pytest.approx([0.0025, 0.005]) and rates[-1] == pytest.approx(0.25)
