"""Which run is meant."""

from __future__ import annotations

import pytest

from headway.errors import UsageError
from headway.telemetry import EventLog, find_run, list_runs, new_run_dir, rundir


def test_runs_of_one_second_are_in_the_order_they_began(tmp_path, monkeypatch):
    moments = iter([1e9 + 0.9, 1e9 + 0.1, 1e9 + 0.1, 1e9 + 0.1001, 1e9 + 0.5])
    monkeypatch.setattr(rundir.time, "time", lambda: next(moments))
    last = new_run_dir(tmp_path, "a")
    first = new_run_dir(tmp_path, "z")
    second = new_run_dir(tmp_path, "z")  # the same moment is not taken twice
    third = new_run_dir(tmp_path, "m")
    assert [run.name for run in list_runs(tmp_path)] == [last.name, third.name, second.name, first.name]
    assert find_run(None, tmp_path).name == last.name


def test_the_newest_run_goes_by_the_instant_and_not_by_local_names(tmp_path):
    for name, t in (("20261118-080000_tokyo_0000", 1e9), ("20261117-180000_paulo_0000", 1e9 + 3600)):
        (tmp_path / name / "ranks").mkdir(parents=True)
        log = EventLog(tmp_path / name / "events.jsonl", clock=lambda t=t: t)
        log.append("run_started", command=[])
        log.close()
    assert [run.name[16:21] for run in list_runs(tmp_path)] == ["paulo", "tokyo"]


def test_a_run_without_events_goes_by_its_name(tmp_path):
    for name in ("20261118-080000_a_0000", "20261118-080001_b_0000", "odd"):
        (tmp_path / name / "ranks").mkdir(parents=True)
    assert [run.name for run in list_runs(tmp_path)][-1] == "odd"
    assert find_run(None, tmp_path).name == "20261118-080001_b_0000"


def test_a_run_is_found_by_its_full_name_in_another_folder_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "output_gpu" / "20261118-080000_tfnet_0000" / "ranks").mkdir(parents=True)
    found = find_run("20261118-080000_tfnet_0000", tmp_path / "runs")
    assert found.root == tmp_path / "output_gpu" / "20261118-080000_tfnet_0000"
    for other in ("20261118-080000_tfnet", "20261118-080000_tfnet_000*", "tfnet"):
        with pytest.raises(UsageError):
            find_run(other, tmp_path / "runs")
