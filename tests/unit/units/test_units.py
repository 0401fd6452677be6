"""Numbers as people read them, at the edges of their units."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.units import duration, short, size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (size((1 << 30) - 1), "1.0 GiB"),
        (size(1023.9 * (1 << 20)), "1023.9 MiB"),
        (size(1023), "1023 B"),
        (duration(0.9996), "1.0 s"),
        (duration(0.999), "999 ms"),
        (duration(59.96), "1:00"),
        (duration(59.94), "59.9 s"),
        (duration(float("nan")), "–"),
        (duration(float("inf")), "–"),
        (size(float("nan")), "–"),
        (short(999_960), "1M"),
        (short(999_400), "999k"),
        (short(999.9), "1k"),
        (short(999.5e12), "1P"),
    ],
)
def test_a_number_that_rounds_to_the_next_unit_is_in_it(text, expected):
    assert text == expected


@given(st.floats(min_value=1e-3, max_value=1e15))
def test_no_exponents_and_no_full_units_are_shown(number):
    assert "e" not in short(number)
    assert not re.fullmatch(r"1024(\.0)? \w+", size(number))
    assert duration(number) not in ("1000 ms", "60.0 s")
