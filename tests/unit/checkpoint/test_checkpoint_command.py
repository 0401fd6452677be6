from __future__ import annotations

import json
from string import Formatter

import pytest

from fakes.disks import make_checkpoint
from headway.cli.main import main
from headway.messages import set_language
from headway.messages.checkpoint import TEXTS
from headway.telemetry import is_locked


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.delenv("LC_MESSAGES", raising=False)
    root = tmp_path / "runs" / "20260101-000000_toy_ab12"
    (root / "ranks").mkdir(parents=True)
    (root / "events.jsonl").touch()
    for step in (10, 20, 30, 40):
        make_checkpoint(root / "checkpoints", step, world_size=1, best_step=10, measures={"bpb": 2.0})
    yield root
    set_language("en")


def ckpt(capsys, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["ckpt", *words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def break_shard(run, step: int) -> None:
    shard = run / "checkpoints" / f"step-{step:08d}" / "rank-00000.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])


def test_listing_names_steps_sizes_and_the_best(run, capsys):
    code, out, _ = ckpt(capsys, "list")
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == ["step", "10", "20", "30", "40"]
    assert "best" in out.splitlines()[1] and "best" not in out.splitlines()[2]
    code, out, _ = ckpt(capsys, "list", run.name, "--json")
    found = json.loads(out)
    assert found["schema"] == "checkpoints/1" and found["checkpoints"][0]["measures"] == {"bpb": 2.0}
    assert [row["is_best"] for row in found["checkpoints"]] == [True, False, False, False]


def test_verifying_good_checkpoints_ends_well(run, capsys):
    code, out, err = ckpt(capsys, "verify")
    assert code == 0 and out.count("intact") == 4 and "headway resume" in err


def test_verifying_a_broken_one_names_it_and_ends_with_5(run, capsys):
    break_shard(run, 30)
    code, out, err = ckpt(capsys, "verify")
    assert code == 5 and "1 of 4" in err and out.count("intact") == 3
    assert "step-00000030  corrupt" in out and "rank-00000.safetensors has" in out
    code, out, _ = ckpt(capsys, "verify", "--json")
    assert code == 5 and json.loads(out)["num_broken"] == 1
    assert ckpt(capsys, "verify", "--step", "40")[0] == 0


def test_a_step_that_is_not_there_is_refused_with_those_that_are(run, capsys):
    code, _, err = ckpt(capsys, "verify", "--step", "41")
    assert code == 2 and "10, 20, 30, 40" in err


@pytest.mark.parametrize("form", ["safetensors", "pt", "folder", "ckpt"])
@pytest.mark.parametrize("place", ["file/sub/w", "/proc/nowhere/w"])
def test_a_place_that_cannot_be_written_to_is_named_as_it_was_typed(run, capsys, tmp_path, form, place):
    (tmp_path / "file").write_text("x")
    code, _, err = ckpt(capsys, "export", "--format", form, "--to", place)
    assert code == 5 and f"cannot export to {place}: " in err and "[checkpoint/export-failed]" in err
    assert "Traceback" not in err and "--to" in err


def test_exporting_takes_the_newest_whole_one(run, capsys, tmp_path):
    break_shard(run, 40)
    code, out, err = ckpt(capsys, "export", "--dry-run", "--json")
    assert code == 0 and json.loads(out)["step"] == 30 and "step-00000040" in err
    assert not (run / "export").exists()
    code, out, _ = ckpt(capsys, "export")
    assert code == 0 and (run / "export" / "model-step-00000030.safetensors").exists()
    assert ckpt(capsys, "export")[0] == 5
    assert ckpt(capsys, "export", "--step", "40")[0] == 5


def test_pruning_asks_the_files_not_the_names(run, capsys):
    break_shard(run, 40)
    (run / "checkpoints" / "step-00000050.tmp-3").mkdir()
    code, out, _ = ckpt(capsys, "prune", "--keep-last", "1", "--dry-run", "--json")
    found = json.loads(out)
    assert code == 0 and [row["path"].rpartition("/")[2] for row in found["removed"]] == [
        "step-00000020",
        "step-00000050.tmp-3",
    ]
    assert (run / "checkpoints" / "step-00000020").exists()
    assert ckpt(capsys, "prune", "--keep-last", "1", "--yes")[0] == 0
    left = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert left == ["latest", "step-00000010", "step-00000030", "step-00000040"]


def test_a_live_run_is_not_pruned(run, capsys):
    from headway.process import make_lease

    (run / "lease.json").write_text(json.dumps(make_lease()))
    code, _, err = ckpt(capsys, "prune", "--keep-last", "1", "--yes")
    assert code == 2 and "prunes its checkpoints itself" in err


def test_a_run_without_checkpoints_says_what_to_set(run, capsys):
    code, _, err = ckpt(capsys, "list", str(make_empty(run)))
    assert code == 5 and "save.every" in err


def make_empty(run):
    empty = run.parent / "20260102-000000_empty_cd34"
    (empty / "ranks").mkdir(parents=True)
    return empty


def test_the_command_speaks_chinese(run, capsys):
    code, out, _ = ckpt(capsys, "verify", "--lang", "zh")
    assert code == 0 and out.count("完好") == 4


def test_both_languages_hold_the_same_facts():
    def places(text: str) -> set[str]:
        return {name for _, name, _, _ in Formatter().parse(text) if name}

    for code, text in TEXTS.items():
        assert text.zh and places(text.en) == places(text.zh), code
        assert places(text.en_hint) == places(text.zh_hint) and bool(text.en_hint) == bool(text.zh_hint), code


def test_pruning_holds_the_run_and_lets_go_of_it(run, capsys, monkeypatch):
    """Issue 10: a run resumed while its checkpoints were pruned lost what it was just saving."""
    held = []
    monkeypatch.setattr("headway.cli.ckpt.sweep", lambda *_: held.append(is_locked(run)))
    assert ckpt(capsys, "prune", "--keep-last", "1", "--yes")[0] == 0
    assert held == [True] and not is_locked(run)
    assert not (run / "lease.json").exists()


def test_checkpoints_behind_a_link_are_not_pruned(run, capsys, tmp_path):
    (run / "checkpoints").rename(tmp_path / "elsewhere")
    (run / "checkpoints").symlink_to(tmp_path / "elsewhere")
    code, _, err = ckpt(capsys, "prune", "--keep-last", "1", "--yes")
    assert code == 2 and "cli/path-a-link" in err
    assert len(list((tmp_path / "elsewhere").glob("step-*"))) == 4
