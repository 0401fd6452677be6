"""Damaged texts: nothing crashes, whatever was cut, mixed or mistyped. The long run is in bench/machine_dumps.py."""

from __future__ import annotations

import test_machine_dump_amd as amd
import test_machine_dump_host as host
import test_machine_dump_odd as odd
import test_machine_dumps as samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.machine import judge_machine, read_dump, report_from
from headway.messages import hint, say

_TEXTS = [value for name, value in vars(samples).items() if name.isupper()]
_TEXTS += [amd.TABLE, odd.TABLE, odd.XML, *host.QUOTAS.values(), *host.LIMITS.values()]


@given(
    st.sampled_from(_TEXTS),
    st.sampled_from(_TEXTS),
    st.integers(0, 5000),
    st.integers(0, 400),
    st.text(alphabet="|+-:,[]()N/AERR! 09²９é\n\t\0GPUX%", max_size=40),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_cut_and_mixed_texts_are_read_and_judged(text, other, place, cut, splinter):
    damaged = text[:place] + splinter + text[place + cut :] + other[place // 2 :]
    dump = read_dump(damaged)
    for finding in judge_machine(report_from(dump)):
        assert say(finding.code, "zh", **finding.facts)
        hint(finding.code, "en", **finding.facts)


@given(st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_text_is_read(text):
    for finding in judge_machine(report_from(read_dump(text))):
        assert say(finding.code, "en", **finding.facts)
