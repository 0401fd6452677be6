"""Runs side by side: what differs, what it brought, and who is left out."""

from __future__ import annotations

import json
import math
from pathlib import Path

from click.testing import CliRunner

from fakes.run_fixture import FakeRun, bpb_at
from headway.cli.compare import compare
from headway.errors import UsageError
from headway.telemetry import RunDir, read_record, write_json
from headway.ui.compare import compare_runs, find_siblings
from headway.ui.report import write_report


def trained(root: Path, *, last: int = 100, recipe: str = "nanochat", **changed: object) -> RunDir:
    """Write a run that got as far as a step, with other settings of its task."""
    made = FakeRun(root, steps=100)
    made.begin()
    made.train(1, 1, last)
    made.event("run_ended", exit_code=0, state="done", step=last)
    job = dict(read_record(made.run.job))
    job["recipe"] = recipe
    job["config"] = {**job["config"], "task": {**job["config"].get("task", {}), **changed}}
    write_json(made.run.job, job)
    return made.run


def test_only_what_differs_is_told_and_the_gain_has_the_measures_sense(tmp_path):
    first, second = trained(tmp_path / "a", branch=True), trained(tmp_path / "b", branch=False, last=50)
    one, two = compare_runs([first, second])
    assert (one.settings, two.settings) == ({"task.branch": "true"}, {"task.branch": "false"})
    assert math.isclose(two.gain(one), bpb_at(100) - bpb_at(50)) and two.gain(one) < 0  # fewer bits are better


def test_siblings_are_of_the_same_recipe_and_differ_in_a_few_settings(tmp_path):
    own = trained(tmp_path / "a")
    trained(tmp_path / "b")  # the same settings: nothing to learn from
    trained(tmp_path / "c", recipe="atlas", branch=False)
    trained(tmp_path / "d", one=1, two=2, three=3, four=4, five=5)
    near = trained(tmp_path / "e", branch=False)
    assert [run.root for run in find_siblings(own)] == [near.root]


def test_the_report_shows_what_a_setting_brought(tmp_path):
    run = trained(tmp_path / "a", branch=True)
    assert "Compared with runs with other settings" not in write_report(run).read_text()
    trained(tmp_path / "b", branch=False, last=50)
    text = write_report(run).read_text()
    assert "Compared with runs with other settings" in text and "task.branch=false" in text
    gap = f"{bpb_at(50) - bpb_at(100):.4g}"
    assert f"{gap} worse" in text and f"差 {gap}" in text


def test_the_command_compares_the_newest_with_its_siblings_or_those_it_is_given(tmp_path):
    trained(tmp_path / "20260101-000000_x_aaaa", branch=False, last=50)
    trained(tmp_path / "20260102-000000_x_bbbb", branch=True)
    told = CliRunner().invoke(compare, ["--out", str(tmp_path)])
    assert told.exit_code == 0, told.output
    assert "task.branch=false" in told.output and "worse" in told.output
    done = CliRunner().invoke(compare, ["aaaa", "bbbb", "--out", str(tmp_path), "--json"])
    data = json.loads(done.output)
    assert data["schema"] == "compare/1" and [one["state"] for one in data["runs"]] == ["done", "done"]
    assert data["runs"][0]["better_by"] == 0 and data["runs"][1]["better_by"] > 0


def test_a_run_alone_is_an_error_with_what_to_type(tmp_path):
    trained(tmp_path / "20260101-000000_x_aaaa")
    told = CliRunner().invoke(compare, ["--out", str(tmp_path)])
    assert isinstance(told.exception, UsageError) and told.exception.code == "ui/compare-alone"
