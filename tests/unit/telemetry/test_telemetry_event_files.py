"""Event files of a script: found while they are open, kept thinned, read once more at the end."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from headway.telemetry import RunDir, collect_left, read_scalars, run_state
from headway.telemetry.event_files import SCALARS, EventFileWatch, ScalarLog, find_open
from headway.telemetry.tfevents import Scalar, encode_first, encode_scalars


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    found = RunDir(tmp_path / "runs" / "r")
    found.root.mkdir(parents=True)
    found.job.write_text(json.dumps({"kind": "foreign"}))
    return found


def write(path: Path, first: int, last: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(
            (encode_first(1.0) if first == 1 else b"")
            + b"".join(
                encode_scalars(step, 9.0, {"train/loss": 1 / step, "val/loss": 2 / step})
                for step in range(first, last + 1)
            )
        )


def test_a_file_that_is_open_for_writing_is_found_and_one_that_is_read_is_not(tmp_path: Path) -> None:
    write(tmp_path / "events.out.tfevents.a", 1, 1)
    write(tmp_path / "events.out.tfevents.b", 1, 1)
    with (tmp_path / "events.out.tfevents.a").open("ab"), (tmp_path / "events.out.tfevents.b").open("rb"):
        assert list(find_open([os.getpid()])) == [str(tmp_path / "events.out.tfevents.a")]


def test_the_reader_beside_follows_a_file_and_ends_with_us(tmp_path: Path, run: RunDir) -> None:
    path = tmp_path / "events.out.tfevents.x"
    write(path, 1, 3)
    watch = EventFileWatch(run, os.getpid(), str(tmp_path))
    watch._hand_over(str(path))
    deadline = time.monotonic() + 30
    while not read_scalars(run) and time.monotonic() < deadline:
        time.sleep(0.05)
    write(path, 4, 5)
    watch.close()
    assert [step for step, _ in read_scalars(run)["train/loss"]][:3] == [1, 2, 3]
    collect_left(run, tmp_path, 0.0)
    assert [step for step, _ in read_scalars(run)["train/loss"]] == [1, 2, 3, 4, 5]


def test_files_of_a_short_run_are_found_below_its_folder(tmp_path: Path, run: RunDir) -> None:
    write(tmp_path / "out" / "tb" / "events.out.tfevents.new", 1, 4)
    write(tmp_path / "out" / "events.out.tfevents.old", 1, 9)
    os.utime(tmp_path / "out" / "events.out.tfevents.old", (5.0, 5.0))
    write(run.root / "tensorboard" / "events.out.tfevents.ours", 1, 9)
    collect_left(run, tmp_path, time.time() - 600)
    assert {tag: len(points) for tag, points in read_scalars(run).items()} == {"train/loss": 4, "val/loss": 4}
    assert run_state(run).loss == 0.25


def test_a_million_numbers_are_thinned(run: RunDir) -> None:
    log = ScalarLog(run.root / SCALARS)
    log.add(Scalar("loss", step, 1.0, 2.0) for step in range(60_000))
    log.add(Scalar(f"tag-{at}", 1, 1.0, 2.0) for at in range(500))
    log.close()
    found = read_scalars(run)
    assert 2000 < len(found["loss"]) < 12_000 and found["loss"][-1][0] > 59_000 and len(found) == 64


def test_damaged_lines_are_left_out(run: RunDir) -> None:
    (run.root / SCALARS).write_text(
        '{"tag":"a","step":1,"value":2}\n{"tag":3}\n[1]\n{"tag":"a","step":"x","value":1}\n{"ta'
    )
    assert read_scalars(run) == {"a": [(1, 2.0)]}
