"""Which run is meant."""

from __future__ import annotations

from headway.telemetry import find_run, list_runs, new_run_dir, rundir


def test_runs_of_one_second_are_in_the_order_they_began(tmp_path, monkeypatch):
    moments = iter([1e9 + 0.9, 1e9 + 0.1, 1e9 + 0.1, 1e9 + 0.1001, 1e9 + 0.5])
    monkeypatch.setattr(rundir.time, "time", lambda: next(moments))
    last = new_run_dir(tmp_path, "a")
    first = new_run_dir(tmp_path, "z")
    second = new_run_dir(tmp_path, "z")  # the same moment is not taken twice
    third = new_run_dir(tmp_path, "m")
    assert [run.name for run in list_runs(tmp_path)] == [last.name, third.name, second.name, first.name]
    assert find_run(None, tmp_path).name == last.name
