"""Metrics come back exactly as they went in, whatever happened to the file."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.telemetry import COLUMNS, MetricsWriter, count_steps, read_metrics, tail_metrics


def write_steps(path: Path, attempt: int, first: int, last: int, loss: float = 1.0) -> None:
    writer = MetricsWriter(path, attempt)
    for step in range(first, last + 1):
        writer.add(step, step * 8, loss, 0.1, 0.5, 100.0 + step, 0.2, mem=1000)
    writer.close()


@given(st.lists(st.floats(), min_size=12, max_size=12), st.one_of(st.none(), st.integers(0, 2**50)))
def test_every_float_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, values: list[float], mem: int | None
) -> None:
    path = tmp_path_factory.mktemp("m") / "metrics.jsonl"
    writer = MetricsWriter(path, 3)
    writer.add(5, 40, *values, mem)
    writer.close()
    found = read_metrics(path)
    for key, value in zip(COLUMNS[2:-1], values, strict=True):
        assert found[key][0] == value or (math.isnan(found[key][0]) and math.isnan(value))
    assert found["a"][0] == 3 and found["step"][0] == 5
    assert math.isnan(found["mem"][0]) if mem is None else found["mem"][0] == mem
    json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_numbers_of_numpy_are_written_as_numbers(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path / "m", 1)
    writer.add(1, 8, np.float32(0.5), np.float64(0.25), 1, 2.0, 0.1)
    writer.close()
    assert json.loads((tmp_path / "m").read_text())["loss"] == 0.5


def test_nothing_is_written_before_flush_and_all_of_it_after(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path / "m", 1)
    writer.add(1, 8, 1.0, 0.1, 0.5, 1.0, 0.1)
    assert not (tmp_path / "m").exists()
    writer.flush()
    writer.add(2, 16, 1.0, 0.1, 0.5, 1.0, 0.1)
    writer.flush()
    writer.flush()
    assert list(read_metrics(tmp_path / "m")["step"]) == [1, 2]
    writer.close()


def test_a_later_attempt_takes_back_the_steps_it_does_again(tmp_path: Path) -> None:
    path = tmp_path / "m"
    write_steps(path, 1, 1, 20, loss=1.0)
    write_steps(path, 2, 11, 15, loss=2.0)
    found = read_metrics(path)
    assert list(found["step"]) == list(range(1, 16))
    assert list(found["loss"]) == [1.0] * 10 + [2.0] * 5


def test_a_line_of_an_old_attempt_that_comes_late_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "m"
    write_steps(path, 2, 5, 8)
    write_steps(path, 1, 6, 6, loss=9.0)
    assert list(read_metrics(path)["loss"]) == [1.0] * 4


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_line_costs_only_itself(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "m"
    write_steps(path, 1, 1, 10)
    os.truncate(path, path.stat().st_size - cut)
    write_steps(path, 2, 10, 12)
    assert list(read_metrics(path)["step"]) == list(range(1, 13))
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_zeros_left_by_a_power_cut_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "m"
    write_steps(path, 1, 1, 3)
    path.write_bytes(path.read_bytes() + b"\0" * 4096 + b"\n")
    write_steps(path, 2, 4, 5)
    assert list(read_metrics(path)["step"]) == [1, 2, 3, 4, 5]


def test_a_file_that_is_not_there_has_no_steps(tmp_path: Path) -> None:
    assert len(read_metrics(tmp_path / "none")["step"]) == 0
    assert len(tail_metrics(tmp_path / "none")["loss"]) == 0


def test_the_tail_is_the_end_of_the_whole(tmp_path: Path) -> None:
    write_steps(tmp_path / "m", 1, 1, 500)
    assert list(tail_metrics(tmp_path / "m", 20)["step"]) == list(range(481, 501))


def test_steps_wait_for_a_disk_that_is_full(tmp_path: Path) -> None:
    place = tmp_path / "gone"
    place.write_text("")
    writer = MetricsWriter(place / "m", 1)
    writer.add(1, 8, 1.0, 0.1, 0.5, 1.0, 0.1)
    writer.flush()
    place.unlink()
    writer.add(2, 16, 1.0, 0.1, 0.5, 1.0, 0.1)
    writer.close()
    assert list(read_metrics(place / "m")["step"]) == [1, 2]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_write_that_fails_half_way_raises_nothing_and_keeps_the_steps(tmp_path: Path) -> None:
    (tmp_path / "m").symlink_to("/dev/full")
    writer = MetricsWriter(tmp_path / "m", 1)
    writer.add(1, 8, 1.0, 0.1, 0.5, 1.0, 0.1)
    writer.flush()
    writer.close()
    (tmp_path / "m").unlink()
    writer.flush()
    writer.close()
    assert list(read_metrics(tmp_path / "m")["step"]) == [1]


def test_what_an_attempt_continues_behind_is_gone_although_its_first_steps_have_no_line(tmp_path: Path) -> None:
    write_steps(tmp_path / "m", 1, 1, 9)
    writer = MetricsWriter(tmp_path / "m", 2)
    writer.go_back(3)
    writer.flush()
    assert list(read_metrics(tmp_path / "m")["step"]) == [1, 2, 3] == list(tail_metrics(tmp_path / "m")["step"])
    writer.add(6, 48, 1.0, 0.1, 0.5, 1.0, 0.1)
    writer.close()
    assert list(read_metrics(tmp_path / "m")["step"]) == [1, 2, 3, 6]
    assert count_steps((tmp_path / "m").read_bytes()) == 10
