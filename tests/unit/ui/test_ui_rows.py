"""Long runs read as a stream (issue 10, item 23): the same lines as the slow way, in little memory."""

import csv
import json
import random
from pathlib import Path

import numpy as np
import pytest

from fakes.run_fixture import write_run
from headway.telemetry import COLUMNS, MetricsWriter, read_metrics
from headway.ui import rows
from headway.ui.export import export_run
from headway.ui.report import gather, write_report
from headway.ui.rows import glance_rows, kept_rows, read_lines, sample_rows


def write_metrics(path: Path, steps: list[tuple[int, int]], **more: object) -> None:
    """Write a line for every (attempt, step)."""
    chance = random.Random(7)
    path.parent.mkdir(parents=True, exist_ok=True)
    writers = {}
    for attempt, step in steps:
        writer = writers.setdefault(attempt, MetricsWriter(path, attempt))
        for other in writers.values():
            if other is not writer:
                other.flush()
        if step <= 0:  # where an attempt continues
            writer.go_back(-step)
            writer.flush()
            continue
        loss = float("nan") if step % 97 == 5 else chance.random()
        facts = {"save": 0.5 if step % 50 == 0 else 0.0, "mem": None if step % 3 else 1 << 30, **more}
        dt = chance.random()
        times = {"data": 0.1 * dt, "forward": 0.3 * dt, "backward": 0.4 * dt, "optimizer": 0.1 * dt}
        writer.add(step, 8 * step, loss, 1e-4, 1.0 / step, 1e9 + step, dt, **times, **facts)
        writer.flush()
    for writer in writers.values():
        writer.close()


HISTORIES = {
    "plain": [(1, step) for step in range(1, 300)],
    "redone": [*[(1, step) for step in range(1, 200)], *[(2, step) for step in range(151, 260)]],
    "back to the start": [*[(1, step) for step in range(1, 100)], *[(2, step) for step in range(1, 40)]],
    "twice": [*[(1, s) for s in range(1, 90)], *[(2, s) for s in range(50, 80)], *[(3, s) for s in range(20, 200)]],
    "a late line of an old attempt": [*[(1, s) for s in range(1, 50)], (2, 30), (1, 51), (2, 31), (2, 32)],
    "continued": [*[(1, s) for s in range(1, 50)], (2, -30), *[(2, s) for s in range(33, 40)], (3, -60), (4, -20)],
    "from the start, no step yet": [*[(1, s) for s in range(1, 50)], (2, 0)],
    "a fork": [(1, -20), (1, 25), (1, 26)],
    "rolled back": [*[(1, s) for s in range(1, 50)], *[(1, s) for s in range(30, 60)]],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_the_same_lines_count_as_in_the_slow_reader(tmp_path, name):
    path = tmp_path / "metrics.jsonl"
    write_metrics(path, HISTORIES[name])
    slow = read_metrics(path)
    parts = list(read_lines(path))
    heads = [np.concatenate([getattr(part, key) for part in parts]) for key in ("attempt", "step", "is_mark")]
    attempt, step, _ = heads
    kept = kept_rows(*heads)
    assert step[kept].tolist() == list(slow["step"]) and attempt[kept].tolist() == list(slow["a"])


def test_random_histories_count_the_same(tmp_path):
    chance = random.Random(3)
    for number in range(30):
        history, step, attempt = [], 0, 1
        for _ in range(chance.randrange(1, 120)):
            step += 1
            if chance.random() < 0.08:
                step, attempt = chance.randrange(1, step + 2), attempt + chance.choice((0, 1, 1))
                if chance.random() < 0.5:
                    history.append((attempt, 1 - step))
                    step += chance.choice((0, 0, 3))
            history.append((attempt, step))
        path = tmp_path / str(number)
        write_metrics(path, history)
        (part,) = read_lines(path)
        kept = kept_rows(part.attempt, part.step, part.is_mark)
        assert part.step[kept].tolist() == list(read_metrics(path)["step"]), history


@pytest.mark.parametrize(
    "damage", [b'{"a":1,"step":', b"\0" * 999, b'{"a":1,"step":1e3}', b"[1,2,3]", b'{"step":5,"a":1}', b"x"]
)
def test_a_damaged_line_costs_only_itself(tmp_path, damage):
    path = tmp_path / "metrics.jsonl"
    write_metrics(path, HISTORIES["plain"][:50])
    whole = path.read_bytes()
    path.write_bytes(whole + damage + b"\n")
    write_metrics(path, HISTORIES["plain"][50:])
    slow = read_metrics(path)
    found = np.concatenate([part.step for part in read_lines(path)])
    extra = [5] if damage.startswith(b'{"step":5') else []
    assert sorted(found.tolist()) == sorted([*range(1, 300), *extra])
    assert len(slow["step"]) >= 245


@pytest.mark.parametrize("name", ["plain", "redone", "twice"])
def test_exports_hold_what_the_slow_reader_finds(tmp_path, name):
    run = write_run(tmp_path / "run")
    path = run.metrics(0)
    path.unlink()
    write_metrics(path, HISTORIES[name])
    slow = {rank: read_metrics(run.metrics(rank)) for rank in run.ranks()}
    export_run(run, "csv", tmp_path / "csv")
    export_run(run, "json", tmp_path / "json")
    with (tmp_path / "csv" / "metrics.csv").open() as file:
        lines = list(csv.DictReader(file))
    told = json.loads((tmp_path / "json" / "metrics.json").read_text())["metrics"]
    assert len(lines) == len(told) == sum(len(columns["step"]) for columns in slow.values())
    for rank, columns in slow.items():
        own = [line for line in lines if line["rank"] == str(rank)]
        for key in COLUMNS:
            found = [float(line[key] or "nan") for line in own]
            assert np.array_equal(found, np.array(columns[key]), equal_nan=True), key
    assert [line["step"] for line in told] == [int(line["step"]) for line in lines]


def test_a_sample_keeps_extremes_and_sums(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "_STRETCHES", 40)
    path = tmp_path / "metrics.jsonl"
    write_metrics(path, [(1, step) for step in range(1, 4001)])
    slow, thin = read_metrics(path), sample_rows(path)
    assert len(thin.columns["step"]) < 500 and thin.num_kept == thin.num_lines == 4000
    assert thin.weight.sum() == 4000
    assert np.nanmax(thin.columns["loss"]) == np.nanmax(slow["loss"])
    assert np.nanmin(thin.columns["loss"]) == np.nanmin(slow["loss"])
    assert max(thin.columns["dt"]) == max(slow["dt"])
    assert float((np.array(thin.columns["save"]) * thin.weight).sum()) == pytest.approx(sum(slow["save"]))
    assert thin.columns["step"][0] == 1 and thin.columns["step"][-1] == 4000


def test_a_long_run_has_the_same_report_figures(tmp_path, monkeypatch):
    run = write_run(tmp_path / "run")
    whole = gather(run)
    monkeypatch.setattr(rows, "_LONG_BYTES", 0)
    monkeypatch.setattr(rows, "_STRETCHES", 50)
    thin = gather(run)
    assert thin.steps is not None and whole.steps is not None
    assert len(thin.steps.step) < len(whole.steps.step)
    assert thin.redone_steps == whole.redone_steps and thin.wall_s == pytest.approx(whole.wall_s, abs=2)
    assert thin.steps.weight.sum() == pytest.approx(len(whole.steps.step), rel=0.02)
    assert np.nanmax(thin.steps.loss) == np.nanmax(whole.steps.loss)
    assert "<svg" in write_report(run).read_text()


def test_a_glance_at_a_long_run_has_its_ends_its_level_and_its_weight(tmp_path):
    path = tmp_path / "metrics.jsonl"
    writer = MetricsWriter(path, 1)
    for step in range(1, 120_001):
        writer.add(step, step * 8, 5.0 - step / 40_000, 1e-3, 0.5, 1e9 + step / 10, 0.1)
    writer.close()
    found = glance_rows(path)
    steps, loss = np.frombuffer(found.columns["step"]), np.frombuffer(found.columns["loss"])
    assert (steps[0], steps[-1]) == (1, 120_000) and len(steps) > 1500
    assert np.abs(loss - (5.0 - steps / 40_000)).max() < 1e-6
    assert abs(found.weight.sum() / 120_000 - 1) < 0.1
    assert len(glance_rows(tmp_path / "absent").columns["step"]) == 0


@pytest.mark.parametrize("value", [0.0, 0.001, -2.5e-05, 10_000_000.0, float("nan"), float("inf"), None])
def test_a_column_that_never_changes_is_read_once_and_rightly(tmp_path, value):
    writer = MetricsWriter(tmp_path / "m", 1)
    for step in range(1, 300):
        writer.add(step, step, 1 / step, value, value, 1.0 + step, 0.5, mem=value)
    writer.close()
    (lines,) = read_lines(tmp_path / "m")
    wanted = np.full(299, np.nan if value is None else value)
    for key in ("lr", "grad_norm", "mem"):
        assert np.array_equal(lines.floats(key), wanted, equal_nan=True)
    assert np.allclose(lines.floats("loss"), 1 / np.arange(1, 300), rtol=1e-15)
