"""A history with impossible times is drawn as far as it goes."""

from __future__ import annotations

import math

import pytest

from headway.ui.report.axis import pick_ticks
from headway.ui.report.timeline import draw_timeline

KINDS = ("run_started", "attempt_started", "training_started", "validation", "incident", "attempt_ended", "run_ended")


@pytest.mark.parametrize("at", range(len(KINDS)))
@pytest.mark.parametrize("time", [math.inf, -math.inf, math.nan, 1e308, -1e308, "Infinity", None, 10**400])
def test_an_impossible_time_does_not_end_the_report(at, time):
    """Issue 10: `OverflowError` on the board's page and in the report."""
    events = [{"kind": kind, "t": 1e9 + n, "step": n, "attempt": 1} for n, kind in enumerate(KINDS)]
    events[at]["t"] = time
    draw_timeline(events)


@pytest.mark.parametrize("high", [0.0, 5e-324, 1e-310, 1e308, math.inf, math.nan, 7.0])
def test_any_range_has_some_ticks(high):
    assert 1 <= len(pick_ticks(0.0, high)) < 30
