"""What is worth a message, how often, and what conditions mean."""

from __future__ import annotations

import time
from datetime import datetime
from datetime import time as clock
from typing import Any, get_args

import pytest

from headway.bridges.limiter import Limiter
from headway.bridges.rules import Alert, AlertRules
from headway.config import ConditionError, read_condition
from headway.config.schema import AlertKind

KINDS = get_args(AlertKind)


def rules(*conditions: str, kinds: Any = KINDS) -> AlertRules:
    return AlertRules(kinds, [read_condition(one) for one in conditions], 60.0)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"kind": "run_ended", "state": "done", "why": "x"}, "finished"),
        ({"kind": "run_ended", "state": "failed", "why": "x"}, "failed"),
        ({"kind": "run_ended", "state": "interrupted", "why": "x"}, "stopped"),
        ({"kind": "incident", "action": "restart", "code": "diagnose/killed"}, "restarted"),
        ({"kind": "hang", "code": "diagnose/rank-stopped"}, "hang"),
        ({"kind": "finding", "code": "devices/disk-low"}, "disk"),
        ({"kind": "finding", "code": "devices/gpu-hot"}, "heat"),
        ({"kind": "finding", "code": "devices/xid"}, "gpu"),
        ({"kind": "finding", "code": "live/new-one"}, "finding"),
        ({"kind": "warning", "code": "launch/quiet", "facts": {"seconds": 9}}, "no-progress"),
    ],
)
def test_events_become_alerts(event: dict[str, Any], kind: str) -> None:
    assert [alert.kind for alert in rules().event(event)] == [kind]
    assert rules(kinds=[one for one in KINDS if one != kind]).event(event) == []


def test_an_incident_that_ends_the_run_is_told_by_its_end() -> None:
    assert rules().event({"kind": "incident", "action": "stop", "code": "diagnose/killed"}) == []


def test_a_condition_speaks_each_time_it_becomes_true() -> None:
    found = rules("loss > 1")
    told = [bool(found.row({"step": step, "loss": loss})) for step, loss in enumerate([0.5, 2, 3, 0.5, 2])]
    assert told == [False, True, False, False, True]


def test_a_condition_waits_for_all_its_numbers() -> None:
    found = rules("val.bpb > 1.2 and step >= 10")
    assert not found.event({"kind": "validation", "step": 5, "measures": {"bpb": 2.0}})
    (alert,) = found.row({"step": 10, "loss": 1.0})
    assert alert.facts["condition"] == "val.bpb > 1.2 and step >= 10" and "val.bpb = 2" in alert.facts["values"]


def test_no_step_for_long_is_said_once_and_not_before_the_first() -> None:
    found = rules()
    assert found.time(1e6) == []
    found.moved(0.0)
    assert found.time(59.0) == [] and [one.kind for one in found.time(61.0)] == ["no-progress"]
    assert found.time(500.0) == []
    found.moved(600.0)
    found.pause()
    assert found.time(9999.0) == []


@pytest.mark.parametrize(
    ("text", "values", "holds"),
    [
        ("loss > 1", {"loss": 2.0}, True),
        ("0.5 < loss <= 1", {"loss": 0.5}, False),
        ("not loss > 1 or lr == 0", {"loss": 2.0, "lr": 0.0}, True),
        ("loss != loss", {"loss": float("nan")}, True),
        ("loss > 1", {"loss": float("nan")}, False),
        ("loss / lr > 1", {"loss": 1.0, "lr": 0.0}, None),
        ("-val.a.b * 2 + 1 < 0", {"val.a.b": 1.0}, True),
        ("loss > 1", {}, None),
    ],
)
def test_conditions_mean_what_they_say(text: str, values: dict[str, float], holds: bool | None) -> None:
    assert read_condition(text).holds(values) is holds


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("loss >", "condition-syntax"),
        ("__import__('os').system('id') > 1", "condition-part"),
        ("loss.__class__ > 1", "condition-name"),
        ("[x for x in y] > 1", "condition-part"),
        ("loss > 'a'", "condition-part"),
        ("loss > True", "condition-part"),
        ("loss ** 9 ** 9 ** 9 > 1", "condition-part"),
        ("loss", "condition-part"),
        ("1 > 0", "condition-constant"),
        ("lss > 1", "condition-name"),
        ("(" * 290 + "1", "condition-syntax"),
        ("loss > " + "1" * 400, "condition-long"),
        ("loss > 1e999", "condition-part"),
    ],
)
def test_what_is_no_condition_is_refused(text: str, code: str) -> None:
    with pytest.raises(ConditionError) as refused:
        read_condition(text)
    assert refused.value.code == f"alert/{code}"


def alert(kind: str = "heat", key: str = "0") -> Alert:
    return Alert(kind=kind, code="devices/gpu-hot", key=key)


def test_the_same_message_is_held_back_and_counted() -> None:
    limiter = Limiter(per_hour=100, repeat_s=60, quiet=None)
    assert limiter.offer(alert(), 0) and not limiter.offer(alert(), 30) and limiter.offer(alert(key="1"), 30)
    assert limiter.take_held() == 1 and limiter.offer(alert(), 61) and limiter.take_held() == 0


def test_no_more_than_so_many_an_hour_but_the_end_always() -> None:
    limiter = Limiter(per_hour=2, repeat_s=1, quiet=None, past=[0.0])
    assert limiter.offer(alert(key="1"), 10) and not limiter.offer(alert(key="2"), 20)
    assert limiter.offer(alert("failed"), 21)
    assert limiter.offer(alert(key="3"), 3700)


def test_quiet_hours_keep_all_but_the_end() -> None:
    night = time.mktime(datetime(2026, 11, 18, 2, 0).timetuple())
    limiter = Limiter(per_hour=9, repeat_s=60, quiet=(clock(23, 0), clock(7, 0)))
    assert not limiter.offer(alert(), night) and limiter.due(night + 60) == []
    assert limiter.offer(alert("failed"), night + 60)
    morning = night + 5.5 * 3600
    assert [one.kind for one in limiter.due(morning)] == ["heat"] and limiter.due(morning) == []
