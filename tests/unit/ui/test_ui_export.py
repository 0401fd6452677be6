"""Exports hold every point; TensorBoard itself reads its files back."""

from __future__ import annotations

import csv
import json
import math
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fakes.run_fixture import FakeRun, write_run
from headway.cli.export import export
from headway.errors import UsageError
from headway.telemetry import COLUMNS, MetricsWriter, RunDir, read_metrics
from headway.ui.export import export_run, write_events
from headway.ui.export.tensorboard import Table, write_tables


def float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def read_scalars(folder: Path) -> dict[str, list[tuple[int, float, float]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
        events.Reload()
        return {tag: [(s.step, s.wall_time, s.value) for s in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_tensorboard_reads_every_point_back(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r")
    num = export_run(run, "tensorboard", tmp_path / "tb")
    seen = 0
    for rank in (0, 1):
        columns = read_metrics(run.metrics(rank))
        found = read_scalars(tmp_path / "tb" / f"rank-{rank}")
        assert len(found) == 13
        for tag, points in found.items():
            column = columns[tag.partition("/")[2]]
            assert points == [
                (int(s), t, float32(v)) for s, t, v in zip(columns["step"], columns["t"], column, strict=True)
            ]
            seen += len(points)
    checks = read_scalars(tmp_path / "tb" / "validation")
    assert set(checks) == {"validation/bpb", "validation/loss"}
    assert seen + sum(map(len, checks.values())) == num


def test_strange_numbers_and_tags_survive_tensorboard(tmp_path: Path) -> None:
    values = [math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324]
    points = [(2**40 + i, 1e9 + i, {"标签/α": value}) for i, value in enumerate(values)]
    write_events(tmp_path / "tb" / "events.out.tfevents.x", points)
    found = read_scalars(tmp_path / "tb")["标签/α"]
    assert [step for step, _, _ in found] == [2**40 + i for i in range(6)]
    assert [str(value) for _, _, value in found] == ["nan", "inf", "-inf", "inf", "-inf", "0.0"]


def test_csv_gives_every_number_back_exactly(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r")
    export_run(run, "csv", tmp_path / "out")
    with (tmp_path / "out" / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = read_metrics(run.metrics(1))
    mine = [row for row in rows if row["rank"] == "1"]
    assert len(rows) == 800 and [float(row["loss"]) for row in mine] == list(columns["loss"])
    assert [int(row["step"]) for row in mine] == list(range(1, 401)) and set(rows[0]) == {"rank", "attempt", *COLUMNS}
    with (tmp_path / "out" / "validations.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 16


def test_json_is_strict_even_with_nan(tmp_path: Path) -> None:
    writer = MetricsWriter(RunDir(tmp_path / "r").metrics(0), 1)
    writer.add(1, 8, math.nan, 0.1, math.inf, 1.0, 0.1)
    writer.close()
    export_run(RunDir(tmp_path / "r"), "json", tmp_path / "out")
    text = (tmp_path / "out" / "metrics.json").read_text()
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert data["schema"] == "metrics/1" and data["metrics"][0]["loss"] == "NaN" and data["metrics"][0]["mem"] is None


def test_a_run_without_steps_is_refused_with_what_to_do(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path / "r")
    fake.events.close()
    with pytest.raises(UsageError) as refused:
        export_run(fake.run, "csv", tmp_path / "out")
    assert refused.value.code == "ui/no-metrics" and "headway watch r --once" in refused.value.hint()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["csv", "json", "tensorboard"])
def test_the_command_writes_exactly_what_the_dry_run_said(tmp_path: Path, kind: str) -> None:
    write_run(tmp_path / "r")
    asked = ["r", "--out", str(tmp_path), "--format", kind, "--to", str(tmp_path / "to")]
    dry = CliRunner().invoke(export, [*asked, "--dry-run"]).output
    assert not (tmp_path / "to").exists()
    data = json.loads(CliRunner().invoke(export, [*asked, "--json"]).output)
    assert data["schema"] == "export/1" and dry == "".join(f"would write {path}\n" for path in data["files"])
    assert sorted(data["files"]) == sorted(str(path) for path in (tmp_path / "to").rglob("*") if path.is_file())


def test_columns_give_the_same_bytes_as_one_point_after_the_other(tmp_path: Path) -> None:
    steps = np.array([1, 127, 128, 16_383, 16_384, 1 << 40, -1, 5], dtype=np.int64)
    dice = np.random.default_rng(0)
    values = {tag: dice.normal(size=len(steps)) for tag in ("a", "time/long-tag", "memory")}
    values["a"][1:4] = (math.inf, 1e300, math.nan)
    values["memory"][[0, 3, 7]] = math.nan
    table = Table(steps, dice.normal(size=len(steps)) + 1.7e9, values, frozenset({"memory"}))
    points = []
    for at, step in enumerate(steps.tolist()):
        row = {tag: float(column[at]) for tag, column in values.items()}
        points.append((step, float(table.wall[at]), {k: v for k, v in row.items() if k == "a" or not math.isnan(v)}))
    num = write_tables(tmp_path / "columns", [table])
    assert num == write_events(tmp_path / "points", points) == 3 * len(steps) - 3
    assert (tmp_path / "columns").read_bytes() == (tmp_path / "points").read_bytes()
