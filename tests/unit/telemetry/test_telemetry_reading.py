"""A run directory may hold anything; reading it never hangs, never takes all memory, never raises a surprise."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fakes.run_fixture import FakeRun, write_run
from headway.telemetry import (
    list_rows,
    read_beat,
    read_json,
    read_log_tail,
    read_part,
    read_record,
    run_state,
    write_json,
    write_whole,
)

DEEP = b"[" * 100_000 + b"]" * 100_000


def test_a_log_that_goes_on_in_its_tail_is_read_to_its_real_end(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"middle\n" * 10)
    (tmp_path / "log.tail.old").write_bytes(b"older\n" * 3)
    (tmp_path / "log.tail").write_bytes(b"newest\n")
    assert read_log_tail(tmp_path / "log", 12) == b"newest\n"
    assert read_log_tail(tmp_path / "log", 25) == b"older\n" * 3 + b"newest\n"
    assert read_log_tail(tmp_path / "log", 10_000) == b"middle\n" * 10 + b"older\n" * 3 + b"newest\n"


def test_a_heartbeat_linked_to_a_device_is_no_heartbeat(tmp_path: Path) -> None:
    (tmp_path / "heartbeat").symlink_to("/dev/zero")
    assert read_beat(tmp_path / "heartbeat") is None
    assert read_part(tmp_path / "heartbeat") == b""


def test_a_fifo_where_a_file_belongs_does_not_make_a_reader_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "job.json")
    assert read_record(tmp_path / "job.json") == {}
    assert read_part(tmp_path / "job.json") == b""


@pytest.mark.parametrize("data", [DEEP, b'{"a": ' + DEEP + b"}", b"\xff\xfe", b"", b"[1]", b"1" * 5000, b'{"plan": '])
def test_a_torn_deep_or_huge_record_counts_as_empty(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "plan.json").write_bytes(data)
    assert read_record(tmp_path / "plan.json") == {}


STRANGE = [None, True, -1, 10**30, 10**400, 1e308, "文", "\ud800", [], [[]], {}, {"a": []}]


@pytest.mark.parametrize("value", STRANGE, ids=repr)
def test_a_wrong_value_anywhere_in_a_record_is_read_as_absent(tmp_path: Path, value: object) -> None:
    fake = FakeRun(tmp_path / "20260101-000000_a_0000", steps=4)
    fake.begin()
    fake.train(1, 1, 4, save_every=2, eval_every=2)
    fake.crash(1, 1, "text", "Traceback")
    fake.end()
    run = fake.run
    plan = json.loads(run.plan.read_bytes())
    job = json.loads(run.job.read_bytes())
    for key in plan:
        run.job.write_text(json.dumps({**job, "plan": {**plan, key: value}}))
        run_state(run)
    for key in job:
        run.job.write_text(json.dumps({**job, key: value}))
        run_state(run)
    lines = run.events.read_text().splitlines()
    events = [json.loads(line) for line in lines]
    for kind in {event["kind"] for event in events}:
        for key in {key for event in events if event["kind"] == kind for key in event}:
            changed = [{**event, key: value} if event["kind"] == kind else event for event in events]
            run.events.write_text("".join(json.dumps(event) + "\n" for event in changed))
            run_state(run)
    assert [row.name for row in list_rows(tmp_path)] == [run.root.name]


@pytest.mark.parametrize("name", ["events.jsonl", "job.json", "plan.json", "lease.json", "log", "ranks", "checkpoints"])
@pytest.mark.parametrize("kind", ["folder", "fifo", "device"])
def test_something_else_in_the_place_of_a_file_is_survived(tmp_path: Path, name: str, kind: str) -> None:
    run = write_run(tmp_path / "20260101-000000_a_0000")
    place = run.root / name
    place.rename(run.root / "aside") if place.exists() else None
    if kind == "folder":
        place.mkdir()
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    run_state(run)
    assert [row.name for row in list_rows(tmp_path)] == [run.root.name]


def test_json_keeps_an_argument_of_other_bytes_than_utf_8(tmp_path: Path) -> None:
    word = os.fsdecode(b"\xff\xfe")
    write_json(tmp_path / "x.json", {"argv": [word]})
    assert os.fsencode(read_json(tmp_path / "x.json")["argv"][0]) == b"\xff\xfe"


@pytest.mark.parametrize("name", ["job.json", "report.html", "config.yaml"])
def test_a_link_under_the_name_of_the_temporary_file_is_not_followed(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".{name}.{os.getpid()}").symlink_to(victim)
    write_whole(tmp_path / name, b"{}")
    assert victim.read_text() == "precious"
    assert (tmp_path / name).read_bytes() == b"{}" and not (tmp_path / name).is_symlink()


def test_a_record_that_cannot_be_written_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    write_json(tmp_path / "job.json", {"a": 1})
    with pytest.raises(TypeError):
        write_json(tmp_path / "job.json", {"a": object()})
    assert read_json(tmp_path / "job.json") == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["job.json"]
