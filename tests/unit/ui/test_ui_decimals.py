"""Decimal text as columns of numbers: as Python reads it, or not at all."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.ui.decimals import read_decimals, read_whole


def _columns(texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = np.frombuffer((",".join(texts) + ",").encode(), dtype=np.uint8)
    end = np.flatnonzero(data == ord(","))
    return data, np.concatenate([[0], end[:-1] + 1]), end


@given(st.lists(st.floats(-1e15, 1e15).filter(lambda one: one == 0 or abs(one) > 1e-90), min_size=4, max_size=60))
def test_floats_as_we_write_them_come_back_within_a_picopart(values):
    found = read_decimals(*_columns([repr(value) for value in values]))
    assert found is not None
    assert all(math.isclose(one, two, rel_tol=2e-12) for one, two in zip(found.tolist(), values, strict=True))


@given(st.lists(st.integers(0, 10**16 - 1), min_size=8, max_size=60))
def test_whole_numbers_come_back_exactly(values):
    found = read_whole(*_columns([str(value) for value in values]))
    assert found is not None and found.tolist() == values


@pytest.mark.parametrize(
    "text", ["null", '"NaN"', "true", "1.2.3", "1e-100", "--1", "-", ".5", "1e", "1e*05", "0x10", "9" * 17, "1 ", "½"]
)
def test_anything_else_is_left_to_the_slow_way(text):
    assert read_decimals(*_columns(["0.125", text, "17.5e-05", "3"])) is None


def test_short_numbers_at_the_very_end_are_not_read_beyond_it():
    found = read_decimals(*_columns(["12345678.5", "1e-05", "0.1", "7"]))
    assert found is not None and found.tolist() == [12345678.5, 1e-05, 0.1, 7.0]
