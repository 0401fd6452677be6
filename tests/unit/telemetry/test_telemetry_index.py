"""The index may be anything; the answer is that of the files."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from fakes.run_fixture import FakeRun, write_live_run, write_run
from headway.telemetry import INDEX_NAME, EventLog, HeartbeatWriter, MetricsWriter, RunDir, index, list_rows, write_json


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    write_run(tmp_path / "20260101-000000_one_aaaa")
    for i in range(6):
        shutil.copytree(tmp_path / "20260101-000000_one_aaaa", tmp_path / f"2026010{i + 2}-000000_more_{i}")
    return tmp_path


def test_rows_are_newest_first_and_the_same_from_the_index(shelf: Path) -> None:
    first = list_rows(shelf)
    assert [row.name[:8] for row in first] == [f"2026010{i}" for i in range(7, 0, -1)]
    assert (shelf / INDEX_NAME).exists()
    assert list_rows(shelf) == first
    assert first[0].checkpoint_bytes == 2 * 14_680_064 and first[0].best is not None


def test_the_index_is_used_and_a_changed_run_is_read_again(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    list_rows(shelf)
    read: list[str] = []
    original = index.run_state
    monkeypatch.setattr(index, "run_state", lambda run: (read.append(run.name), original(run))[1])
    list_rows(shelf)
    assert read == []
    log = EventLog(shelf / "20260103-000000_more_1" / "events.jsonl")
    log.append("run_started", command=[])
    log.close()
    assert {row.name: row.state for row in list_rows(shelf)}["20260103-000000_more_1"] == "lost"
    assert read == ["20260103-000000_more_1"]


@pytest.mark.parametrize("seed", range(25))
def test_a_damaged_index_changes_nothing(shelf: Path, seed: int) -> None:
    truth = list_rows(shelf)
    path = shelf / INDEX_NAME
    chance = random.Random(seed)
    data = bytearray(path.read_bytes())
    if seed % 5 == 0:
        data = data[: chance.randrange(len(data))]
    for _ in range(chance.choice([1, 20, 400])):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(data))
    assert list_rows(shelf) == truth
    assert list_rows(shelf) == truth


def test_an_index_with_other_tables_is_made_anew(shelf: Path) -> None:
    table = sqlite3.connect(shelf / INDEX_NAME)
    table.execute("CREATE TABLE runs (something TEXT)")
    table.commit()
    table.close()
    truth = list_rows(shelf)
    table = sqlite3.connect(shelf / INDEX_NAME)
    assert table.execute("SELECT count(*) FROM runs").fetchone() == (len(truth),)
    table.close()


def test_a_writer_never_makes_a_reader_wait(shelf: Path) -> None:
    truth = list_rows(shelf)
    writer = sqlite3.connect(shelf / INDEX_NAME, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    (shelf / "20260101-000000_one_aaaa" / "checkpoints" / "new").mkdir()
    assert list_rows(shelf) == truth
    writer.execute("ROLLBACK")
    writer.close()


def test_a_removed_run_leaves_the_list_and_the_index(shelf: Path) -> None:
    list_rows(shelf)
    shutil.rmtree(shelf / "20260101-000000_one_aaaa")
    assert len(list_rows(shelf)) == 6
    table = sqlite3.connect(shelf / INDEX_NAME)
    assert table.execute("SELECT count(*) FROM runs").fetchone() == (6,)
    table.close()


def test_the_death_of_a_supervisor_is_seen_although_no_file_changed(tmp_path: Path) -> None:
    run = write_live_run(tmp_path / "20260101-000000_live_aaaa")
    assert list_rows(tmp_path)[0].state == "running"
    write_json(run.lease, {"pid": 1, "boot_id": "x", "start_ticks": 1, "host": "y"})
    for path in (run.lease, run.events, run.metrics(0), run.metrics(1)):
        os.utime(path, (1.0, 1.0))
    assert list_rows(tmp_path)[0].state == "lost"


def test_a_loss_that_is_not_a_number_comes_back_from_the_index(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path / "20260101-000000_nan_aaaa")
    writer = MetricsWriter(RunDir(fake.run.root).metrics(0), 1)
    writer.add(1, 16, float("nan"), 0.1, float("inf"), 1.0, 0.1)
    writer.close()
    fake.end("failed", 5)
    assert [str(list_rows(tmp_path)[0].loss) for _ in range(2)] == ["nan", "nan"]


def test_a_folder_that_is_not_there_holds_no_runs(tmp_path: Path) -> None:
    assert list_rows(tmp_path / "nothing") == []
    assert not (tmp_path / "nothing").exists()


def test_the_step_of_a_live_run_moves_although_no_file_gets_a_new_time(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path / "20260101-000000_live_aaaa")
    fake.hold()
    fake.begin()
    beat = HeartbeatWriter(fake.run.heartbeat(0), 1)
    beat.beat(3, 5)
    assert [row.step for row in list_rows(tmp_path)] == [5]
    beat.beat(3, 70)
    assert [row.step for row in list_rows(tmp_path)] == [70]
    fake.events.close()


@pytest.mark.parametrize(
    "change",
    ["[1]", "null", "[" * 100_000, "{", *({"started": "x"}, {"best": 7}, {"cause": {"q": 1}}, {"state": []}, {"x": 1})],
    ids=lambda change: str(change)[:20],
)
def test_a_row_with_a_right_checksum_that_is_not_ours_is_read_again(tmp_path: Path, change: Any) -> None:
    """Issue 10: an index in a folder that was received ended `runs` in a traceback."""
    write_run(tmp_path / "20261118-000000_tiny_0001")
    rows = list_rows(tmp_path)
    db = sqlite3.connect(tmp_path / INDEX_NAME)
    ((key, stamp, row),) = db.execute("SELECT name, stamp, row FROM runs").fetchall()
    text = change if isinstance(change, str) else json.dumps(json.loads(row) | change)
    db.execute("UPDATE runs SET row = ?, crc = ?", (text, index._checksum(key, stamp, text)))
    db.commit()
    db.close()
    assert list_rows(tmp_path) == rows
