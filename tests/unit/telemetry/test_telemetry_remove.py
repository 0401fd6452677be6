"""`headway runs rm`: what goes, what stays, and what is asked before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from fakes.run_fixture import write_live_run, write_run
from headway.cli.runs import runs
from headway.errors import UsageError
from headway.process import make_lease
from headway.telemetry import RunDir, list_runs, remove_run, write_json


def removed(out: Path, *words: str):
    return CliRunner().invoke(runs, ["rm", "--out", str(out), *words])


def test_runs_are_deleted_whole_and_others_stay(tmp_path):
    for name in ("20260101-000000_one_aaaa", "20260102-000000_two_bbbb", "20260103-000000_six_cccc"):
        write_run(tmp_path / name)
    result = removed(tmp_path, "--yes", "--json", "one", "20260102-000000_two_bbbb", "one")
    told = json.loads(result.output)
    assert told["schema"] == "runs-rm/1" and [row["name"][-4:] for row in told["removed"]] == ["aaaa", "bbbb"]
    assert all(row["bytes"] > 0 for row in told["removed"])
    assert [run.name[-4:] for run in list_runs(tmp_path)] == ["cccc"]
    assert not [place for place in tmp_path.iterdir() if "one" in place.name or "two" in place.name]


def test_the_folder_may_stand_before_the_word_rm(tmp_path):
    write_run(tmp_path / "20260101-000000_one_aaaa")
    result = CliRunner().invoke(runs, ["--out", str(tmp_path), "rm", "--yes", "one"])
    assert result.exit_code == 0 and not list_runs(tmp_path)


def test_nothing_goes_when_one_name_is_wrong_or_nobody_can_be_asked(tmp_path):
    write_run(tmp_path / "20260101-000000_one_aaaa")
    for words, code in ((("--yes", "one", "nine"), "telemetry/no-run"), (("one",), "ui/rm-needs-yes")):
        with pytest.raises(UsageError) as refused:
            CliRunner().invoke(runs, ["rm", "--out", str(tmp_path), *words], catch_exceptions=False)
        assert refused.value.code == code
    assert "would delete 20260101-000000_one_aaaa" in removed(tmp_path, "--dry-run", "one").output
    assert [run.name for run in list_runs(tmp_path)] == ["20260101-000000_one_aaaa"]


def test_a_run_that_is_supervised_stays(tmp_path):
    run = write_live_run(tmp_path / "20260101-000000_one_aaaa")
    write_json(run.lease, make_lease())
    with pytest.raises(UsageError) as refused:
        remove_run(run)
    assert refused.value.code == "telemetry/remove-live" and run.checkpoints.is_dir()


def test_whoever_takes_a_run_while_it_is_moved_keeps_it(tmp_path, monkeypatch):
    run = write_run(tmp_path / "20260101-000000_one_aaaa")
    rename = Path.rename

    def taken(self: Path, target: Path) -> Path:
        if self == run.root:
            write_json(run.lease, make_lease())
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", taken)
    with pytest.raises(UsageError) as refused:
        remove_run(run)
    assert refused.value.code == "telemetry/remove-live" and run.checkpoints.is_dir()


def test_links_and_other_folders_are_no_runs(tmp_path):
    run = write_run(tmp_path / "20260101-000000_one_aaaa")
    link = tmp_path / "20260102-000000_two_bbbb"
    link.symlink_to(run.root)
    (tmp_path / "mine" / "ranks").mkdir(parents=True)
    for place, code in ((link, "telemetry/remove-link"), (tmp_path / "mine", "telemetry/remove-not-a-run")):
        with pytest.raises(UsageError) as refused:
            remove_run(RunDir(place))
        assert refused.value.code == code
    assert run.root.is_dir() and (tmp_path / "mine" / "ranks").is_dir()


def test_what_cannot_be_deleted_keeps_its_name(tmp_path, monkeypatch):
    run = write_run(tmp_path / "20260101-000000_one_aaaa")

    def fail(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(shutil, "rmtree", fail)
    with pytest.raises(UsageError) as refused:
        remove_run(run)
    assert refused.value.code == "telemetry/remove-failed" and [one.name for one in list_runs(tmp_path)] == [run.name]
