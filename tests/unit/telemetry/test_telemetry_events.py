"""The history survives torn lines, full disks and strange facts."""

from __future__ import annotations

import json
import logging
import math
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.telemetry import EventLog, follow_events, number, read_events


def test_events_are_numbered_in_order_and_go_on_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    for _ in range(2):
        log = EventLog(path)
        log.append("planned")
        log.append("warning", code="x/y", facts={})
        log.close()
    assert [event["seq"] for event in read_events(path)] == [1, 2, 3, 4]
    assert [event["kind"] for event in read_events(path)] == ["planned", "warning"] * 2


@pytest.mark.parametrize("cut", [1, 5, 20, 33])
def test_a_torn_last_line_is_moved_aside_and_later_lines_stay_readable(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.append("planned")
    whole = path.stat().st_size
    log.append("validation", step=10, measures={"bpb": 1.5})
    log.close()
    os.truncate(path, whole + cut)
    assert len(read_events(path)) == 1
    log = EventLog(path)
    log.append("attempt_started", attempt=1)
    log.close()
    assert [(event["seq"], event["kind"]) for event in read_events(path)] == [(1, "planned"), (2, "attempt_started")]
    assert all(json.loads(line) for line in path.read_text().splitlines())
    assert len((tmp_path / "events.jsonl.torn").read_bytes()) == cut + 1


def test_a_last_line_that_only_lost_its_line_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"seq":7,"t":1.0,"kind":"planned"}')
    log = EventLog(path)
    log.append("warning")
    log.close()
    assert [event["seq"] for event in read_events(path)] == [7, 8]


def test_facts_cannot_overwrite_the_stamp(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "e", clock=lambda: 5.0)
    log.append("guard", seq=99, t=1.0, step=3)
    log.close()
    assert read_events(tmp_path / "e") == [{"seq": 1, "t": 5.0, "kind": "guard", "step": 3}]


def test_numbers_that_json_lacks_and_broken_text_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "e"
    log = EventLog(path)
    log.append("validation", measures={"a": math.nan, "b": -math.inf}, text="bad \udcff 好", place=Path("x"))
    log.close()
    (event,) = read_events(path)
    assert math.isnan(number(event["measures"]["a"])) and number(event["measures"]["b"]) == -math.inf
    assert event["text"] == "bad \udcff 好" and event["place"] == "x"
    json.loads(path.read_bytes(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_a_history_that_cannot_be_written_never_stops_the_run_and_is_caught_up_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "gone"
    place.write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING):
        log = EventLog(place / "events.jsonl")
        log.append("run_started")
        log.append("planned")
    assert len(caplog.records) == 1
    place.unlink()
    log.append("attempt_started", attempt=1)
    log.close()
    assert [event["kind"] for event in read_events(place / "events.jsonl")] == [
        "run_started",
        "planned",
        "attempt_started",
    ]


def test_events_of_several_threads_never_mix(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "e")
    threads = [
        threading.Thread(target=lambda: [log.append("warning", text="x" * 300) for _ in range(25)]) for _ in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    assert [event["seq"] for event in read_events(tmp_path / "e")] == list(range(1, 51))


def test_following_yields_old_and_new_events_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "e"
    log = EventLog(path)
    log.append("planned")
    looks = iter([False, False, True])

    def is_over() -> bool:
        log.append("warning")
        return next(looks)

    kinds = [event["kind"] for event in follow_events(path, is_over, poll_s=0.0)]
    log.close()
    assert kinds == ["planned", "warning", "warning", "warning"]


@given(st.binary(max_size=80))
def test_rubbish_between_lines_hides_no_event(tmp_path_factory: pytest.TempPathFactory, rubbish: bytes) -> None:
    path = tmp_path_factory.mktemp("e") / "e"
    good = b'{"seq":1,"kind":"planned"}\n'
    path.write_bytes(good + rubbish + b"\n" + good)
    assert sum(event == {"seq": 1, "kind": "planned"} for event in read_events(path)) >= 2
