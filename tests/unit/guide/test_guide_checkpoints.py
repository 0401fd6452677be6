"""Earlier results are kept, found again under their old names, and never replaced by worse ones in silence."""

from __future__ import annotations

import json
import os
import threading
import time
import zipfile
from pathlib import Path

import pytest

from fakes.disks import make_checkpoint
from headway.config import dump_yaml, load_config
from headway.errors import UsageError
from headway.guide import (
    Made,
    NamedCheckpoints,
    Resumed,
    StepWriter,
    best_of,
    find_source,
    held_below,
    keep_earlier,
    read_note,
)
from headway.guide.checkpoints import NOTE
from headway.guide.command import _name_of
from headway.guide.follow import _find_started
from headway.task import find_recipe
from headway.telemetry import RunDir


class PlainWriter:
    """Writes what the checkpoint's folder is called."""

    def write(self, checkpoint, out, made):
        out.write_text(checkpoint.name)

    def close(self):
        pass


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_run(project, name, *words):
    run = RunDir(project / "runs" / name)
    (run.root / "ranks").mkdir(parents=True)
    loaded = load_config(None, recipe=find_recipe, overrides=["recipe=layoutmaster", *words])
    run.config.write_text(dump_yaml(loaded.config))
    return run


def write(project, run, files, said=None, best="best_model.pth"):
    """Let a run write files: name to step and mean IoU."""
    said = [] if said is None else said
    shelf = NamedCheckpoints(project / "checkpoints", writer=PlainWriter(), write=said.append, best=best)
    for name, (step, iou) in files.items():
        checkpoint = run.root / "checkpoints" / f"step-{step}"
        checkpoint.mkdir(parents=True, exist_ok=True)
        made = Made(run=run, step=step, epoch=step, measures={"mean_iou": iou}, decides="mean_iou", sense="max")
        shelf.add(checkpoint, name, made)
    shelf.close()
    return said


def test_a_second_start_moves_the_first_runs_files_and_says_where(project):
    first = make_run(project, "20260101-000000_a_0000")
    write(project, first, {"checkpoint_epoch_10.pth": (10, 0.5), "best_model.pth": (20, 0.846)})
    lines = keep_earlier(project / "checkpoints", out=project / "runs", best="best_model.pth")
    place = project / "checkpoints" / first.name
    assert (place / "checkpoint_epoch_10.pth").read_text() == "step-10"
    assert any(str(place) in line for line in lines)
    assert (project / "checkpoints" / "best_model.pth").exists()
    assert any("mean_iou 0.8460" in line and first.name in line for line in lines)


def test_a_name_of_the_guide_is_found_wherever_it_was_moved(project):
    first = make_run(project, "20260101-000000_a_0000")
    write(project, first, {"checkpoint_epoch_10.pth": (10, 0.5)})
    keep_earlier(project / "checkpoints", out=project / "runs", best=None)
    said = []
    source = find_source(project / "checkpoints" / "checkpoint_epoch_10.pth", project / "runs", said.append)
    assert (source.run.name, source.step) == (first.name, 10)
    assert first.name in said[0]
    second = make_run(project, "20260102-000000_a_0000")
    write(project, second, {"checkpoint_epoch_10.pth": (12, 0.4)})
    again = find_source(project / "checkpoints" / "checkpoint_epoch_10.pth", project / "runs", said.append)
    assert (again.run.name, again.step, len(said)) == (second.name, 12, 1)


def test_the_best_is_replaced_by_a_better_one_only_and_the_other_is_kept(project):
    best = project / "checkpoints" / "best_model.pth"
    first, second, third = (make_run(project, f"2026010{day}-000000_a_0000") for day in (1, 2, 3))
    write(project, first, {"best_model.pth": (20, 0.846)})
    said = write(project, second, {"best_model.pth": (3, 0.56)})
    assert best.read_text() == "step-20"
    assert (project / "checkpoints" / second.name / "best_model.pth").read_text() == "step-3"
    assert any("0.8460" in line and "0.5600" in line for line in said)
    said = write(project, third, {"best_model.pth": (30, 0.9)})
    assert best.read_text() == "step-30"
    assert (project / "checkpoints" / first.name / "best_model.pth").read_text() == "step-20"
    assert any(str(project / "checkpoints" / first.name) in line for line in said)


def test_measures_of_other_data_are_not_compared(project):
    first = make_run(project, "20260101-000000_a_0000")
    second = make_run(project, "20260102-000000_a_0000", "task.data_dir=elsewhere")
    write(project, first, {"best_model.pth": (20, 0.846)})
    write(project, second, {"best_model.pth": (3, 0.56)})
    assert (project / "checkpoints" / "best_model.pth").read_text() == "step-3"
    assert (project / "checkpoints" / first.name / "best_model.pth").read_text() == "step-20"


def test_a_resumed_run_keeps_the_files_it_comes_from(project):
    first = make_run(project, "20260101-000000_a_0000")
    write(project, first, {"checkpoint_epoch_10.pth": (10, 0.5), "checkpoint_epoch_20.pth": (20, 0.6)})
    source = find_source(project / "checkpoints" / "checkpoint_epoch_10.pth", project / "runs")
    keep_earlier(project / "checkpoints", out=project / "runs", best=None, since=source)
    assert (project / "checkpoints" / "checkpoint_epoch_10.pth").exists()
    assert (project / "checkpoints" / first.name / "checkpoint_epoch_20.pth").exists()


def test_a_run_beside_one_at_work_mixes_no_epochs_with_it(project, monkeypatch):
    first, second = (make_run(project, f"2026010{day}-000000_a_0000") for day in (1, 2))
    shelves = [
        NamedCheckpoints(project / "checkpoints", writer=PlainWriter(), write=lambda _: None, best="best_model.pth")
        for _ in range(2)
    ]
    monkeypatch.setattr("headway.guide.checkpoints.is_supervised", lambda _: True)
    for run, shelf, other in zip((first, second), shelves, (None, first), strict=True):
        found = shelf.begin(run)
        assert (found and found.name) == (other and other.name)
    for turn in (10, 20):
        for run, shelf in zip((first, second), shelves, strict=True):
            checkpoint = run.root / "checkpoints" / f"{run.name}-{turn}"
            checkpoint.mkdir(parents=True)
            shelf.add(checkpoint, f"checkpoint_epoch_{turn}.pth", Made(run=run, step=turn, epoch=turn))
            shelf.add(checkpoint, "current.pth", Made(run=run, step=turn, epoch=turn))
    for shelf in shelves:
        shelf.close()
    folder = project / "checkpoints"
    files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.pth")}
    names = {"checkpoint_epoch_10.pth": 10, "checkpoint_epoch_20.pth": 20, "current.pth": 20}
    plain = {name: f"{first.name}-{turn}" for name, turn in names.items()}
    assert files == plain | {f"{second.name}/{name}": f"{second.name}-{turn}" for name, turn in names.items()}
    assert find_source(folder / second.name / "checkpoint_epoch_10.pth", project / "runs").run.name == second.name
    assert find_source(folder / "checkpoint_epoch_10.pth", project / "runs").run.name == first.name


def test_a_file_that_is_not_ours_is_moved_and_not_lost(project):
    (project / "checkpoints").mkdir()
    (project / "checkpoints" / "best_model.pth").write_text("mine")
    said = write(project, make_run(project, "20260101-000000_a_0000"), {"best_model.pth": (3, 0.5)})
    assert (project / "checkpoints" / "earlier" / "best_model.pth").read_text() == "mine"
    assert any("earlier" in line for line in said)


def test_the_best_of_all_runs_is_found_by_its_measure_and_not_by_its_step(project):
    first, second = (make_run(project, f"2026010{day}-000000_a_0000") for day in (1, 2))
    write(project, first, {"checkpoint-1000": (1000, 0.8)}, best=None)
    keep_earlier(project / "checkpoints", out=project / "runs", best=None)
    write(project, second, {"checkpoint-144": (144, 0.2)}, best=None)
    best = best_of(held_below(project / "checkpoints", project / "runs"))
    assert best is not None and best.path == project / "checkpoints" / first.name / "checkpoint-1000"


def test_the_best_of_two_runs_with_files_of_one_name_is_the_better_runs_own_file(project):
    for number, (step, iou) in enumerate([(10, 0.8), (12, 0.2)]):
        keep_earlier(project / "checkpoints", out=project / "runs", best=None)
        run = make_run(project, f"2026010{number + 1}-000000_a_0000")
        write(project, run, {"checkpoint_epoch_10.pth": (step, iou)}, best=None)
    best = best_of(held_below(project / "checkpoints", project / "runs"))
    assert best is not None and (best.run.name, best.path.read_text()) == ("20260101-000000_a_0000", "step-10")
    best.path.unlink()
    left = held_below(project / "checkpoints", project / "runs")
    assert [(held.run.name, held.path.read_text()) for held in left] == [("20260102-000000_a_0000", "step-12")]


def test_resume_takes_a_run_by_name_or_path_and_a_file_of_one(project):
    name = "20260101-000000_a_0000"
    run = make_run(project, name)
    (run.root / "job.json").write_text("{}")
    write(project, run, {"best_model.pth": (3, 0.5)})
    runs = Path("runs")
    for asked in ("latest", name, f"runs/{name}", f"./runs/{name}/", str(run.root)):
        assert Resumed.of(asked, runs).continued.name == name, asked
    for asked in ("checkpoints/best_model.pth", "checkpoints/gone.pth", "best_model.pth"):
        assert Resumed.of(asked, runs) == Resumed(resume=Path(asked)), asked
    assert Resumed.of(None, runs) == Resumed()
    with pytest.raises(UsageError) as refused:
        Resumed.of("20260101", runs)
    assert refused.value.code == "guide/no-run"


def test_a_stopped_run_is_named_where_another_terminal_has_begun_a_newer_one(project):
    runs = [make_run(project, f"2026010{day}-000000_a_0000") for day in (1, 2)]
    for run in runs:
        (run.root / "job.json").write_text("{}")
    assert [_name_of(run, Path("runs")) for run in runs] == [runs[0].name, "latest"]


def test_before_the_first_training_there_is_no_list_to_choose_from(project):
    with pytest.raises(UsageError) as refused:
        find_source(project / "checkpoints" / "best_model.pth", project / "runs")
    assert refused.value.code == "guide/no-checkpoint-yet" and "one of them" not in refused.value.hint()


def test_a_checkpoint_that_is_nowhere_is_refused_with_a_short_list(project):
    (project / "checkpoints").mkdir()
    for epoch in range(50):
        (project / "checkpoints" / f"checkpoint_epoch_{epoch}.pth").write_text("")
    with pytest.raises(UsageError) as refused:
        find_source(project / "checkpoints" / "checkpoint_epoch_99.pth", project / "runs")
    assert refused.value.code == "guide/no-checkpoint"
    assert "checkpoint_epoch_48.pth, checkpoint_epoch_49.pth" in refused.value.text()
    assert refused.value.text().count(".pth") < 12
    (project / "checkpoints" / "best_model.pth").write_text("")
    for asked, wanted in {"checkpoint_epoch_12.pt": "_12.pth", "best_modle.pth": "best_model.pth"}.items():
        with pytest.raises(UsageError) as refused:
            find_source(project / "checkpoints" / asked, project / "runs")
        assert wanted in refused.value.text(), asked


def test_the_list_of_checkpoints_has_no_folders_of_runs(project):
    for day in (1, 2):
        write(project, make_run(project, f"2026010{day}-000000_a_0000"), {"checkpoint_epoch_5.pth": (day, day / 10)})
    assert (project / "checkpoints" / "20260101-000000_a_0000").is_dir()
    with pytest.raises(UsageError) as refused:
        find_source(Path("checkpoints/checkpoint_epoch_5.pt"), Path("runs"))
    assert refused.value.facts["known"] == "checkpoint_epoch_5.pth"


def test_a_name_in_a_folder_that_is_misspelt_is_refused_with_the_right_folder(project):
    write(project, make_run(project, "20260101-000000_a_0000"), {"checkpoint_epoch_5.pth": (5, 0.5)})
    with pytest.raises(UsageError) as refused:
        find_source(Path("checkpoint/checkpoint_epoch_5.pth"), Path("runs"))
    assert refused.value.code == "guide/no-checkpoint-folder" and "to checkpoints/" in refused.value.text("en")


@pytest.mark.parametrize("spelling", ["./checkpoints/", "checkpoints/../checkpoints//", "{project}/checkpoints/", ""])
def test_a_checkpoint_is_found_however_its_path_is_written(project, spelling):
    run = make_run(project, "20260101-000000_a_0000")
    write(project, run, {"checkpoint_epoch_5.pth": (5, 0.5)})
    said = []
    place = Path(spelling.format(project=project) + "checkpoint_epoch_5.pth")
    source = find_source(place, Path("runs"), said.append)
    assert (source.run.name, source.step) == (run.name, 5)
    assert [line.partition(";")[0] for line in said] == ([] if spelling else ["there is no checkpoint_epoch_5.pth"])


def test_a_project_that_was_renamed_finds_its_checkpoints(project, monkeypatch):
    (project / "p").mkdir()
    write(project / "p", make_run(project / "p", "20260101-000000_a_0000"), {"checkpoint_epoch_5.pth": (5, 0.5)})
    (project / "p").rename(project / "q")
    monkeypatch.chdir(project / "q")
    source = find_source(Path("checkpoints/checkpoint_epoch_5.pth"), Path("runs"))
    assert source.step == 5 and source.run.root.resolve() == project / "q" / "runs" / "20260101-000000_a_0000"


def test_a_checkpoint_that_was_not_made_here_is_refused_and_never_unpickled(project):
    with zipfile.ZipFile(project / "a.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"cos\nsystem\n(S'false'\ntR.")
    (project / "b.pt").write_bytes(b"\x80\x02}q\x00.")
    for name in ("a.pt", "b.pt"):
        assert read_note(project / name) is None
        with pytest.raises(UsageError) as refused:
            find_source(project / name, project / "runs")
        assert refused.value.code == "guide/foreign"


def test_a_checkpoint_whose_run_is_gone_says_so(project):
    with zipfile.ZipFile(project / "a.pt", "w") as archive:
        archive.writestr(NOTE, json.dumps({"run": "gone", "step": 3}))
    with pytest.raises(UsageError) as refused:
        find_source(project / "a.pt", project / "runs")
    assert refused.value.code == "guide/run-gone"
    (project / "runs" / "gone" / "ranks").mkdir(parents=True)
    assert find_source(project / "a.pt", project / "runs").step == 3


def test_a_project_that_was_moved_keeps_its_way_back(project):
    run = make_run(project / "old", "20260101-000000_a_0000")
    write(project / "old", run, {"checkpoint_epoch_10.pth": (10, 0.5)})
    (project / "old").rename(project / "new")
    source = find_source(project / "new" / "checkpoints" / "checkpoint_epoch_10.pth", project / "new" / "runs")
    assert source.step == 10


def test_a_second_run_of_as_many_steps_writes_its_own_pair_and_keeps_the_first(project):
    checkpoint = make_checkpoint(project / "shelf", 4)
    place, runs = project / "base_checkpoints", [make_run(project, f"2026010{day}-000000_a_0000") for day in (1, 2)]
    for run in runs:
        said = keep_earlier(place, out=project / "runs", best=None)
        shelf = NamedCheckpoints(place, writer=StepWriter(), write=said.append)
        made = Made(run=run, step=4, epoch=0, measures={"bpb": 0.3})
        shelf.add(checkpoint, "model_000004.pt", made)
        shelf.close()
        assert sorted(path.name for path in place.glob("*.*")) == ["meta_000004.json", "model_000004.pt"], said
    kept = place / runs[0].name
    assert sorted(path.name for path in kept.iterdir()) == ["meta_000004.json", "model_000004.pt"]


def test_what_a_killed_writer_left_is_removed_and_what_one_is_writing_is_not(project):
    for name, age_s in ((".export-old", 4000), (".export-new", 10)):
        file = project / "checkpoints" / name / "weights.safetensors"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x")
        for path in (file, file.parent):
            os.utime(path, (time.time() - age_s,) * 2)
    keep_earlier(project / "checkpoints", out=project / "runs", best=None)
    assert [path.name for path in (project / "checkpoints").iterdir()] == [".export-new"]


class SlowWriter(PlainWriter):
    """Takes a moment, and like the real ones trusts that nobody else writes there meanwhile."""

    def write(self, checkpoint, out, made):
        time.sleep(0.2)
        if not out.exists():
            super().write(checkpoint, out, made)


def test_two_runs_that_end_at_once_each_keep_their_own_file(project):
    place, said = project / "base_checkpoints", []
    runs = [make_run(project, f"2026010{day}-000000_a_0000") for day in (1, 2)]
    shelves = [NamedCheckpoints(place, writer=SlowWriter(), write=said.append) for _ in runs]
    for run, shelf in zip(runs, shelves, strict=True):
        shelf.add(run.root / f"of-{run.name}", "model_000008.pt", Made(run=run, step=8, epoch=0))
    for shelf in shelves:
        shelf.close()
    assert sorted(path.read_text() for path in place.rglob("*.pt")) == [f"of-{run.name}" for run in runs]
    assert any("is now" in line for line in said)


class FailingWriter(PlainWriter):
    """Fails as when a file of the checkpoint is gone; the rest is removed a moment later."""

    def __init__(self, *, is_removed):
        self._is_removed = is_removed

    def write(self, checkpoint, out, made):
        if self._is_removed:
            threading.Timer(0.2, checkpoint.rmdir).start()
        raise FileNotFoundError("rank-00000.safetensors")


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_checkpoint_that_is_being_removed_is_no_failure_to_write(project, is_removed):
    run, said, warned = make_run(project, "20260101-000000_a_0000"), [], []
    writer = FailingWriter(is_removed=is_removed)
    shelf = NamedCheckpoints(project / "checkpoints", writer=writer, write=said.append, warn=warned.append)
    checkpoint = run.root / "checkpoints" / "step-4"
    checkpoint.mkdir(parents=True)
    shelf.add(checkpoint, "last.pth", Made(run=run, step=4, epoch=0))
    shelf.close()
    assert (warned == []) is is_removed


def test_a_command_follows_the_run_that_it_began_and_not_that_of_another_terminal(project):
    for name, pid in (("20260101-000000_a_0000", 41), ("20260101-000000_a_0001", 42)):
        run = make_run(project, name)
        (run.root / "job.json").write_text("{}")
        event = {"seq": 1, "t": 1.0, "kind": "run_started", "command": [], "starter": {"pid": pid}}
        run.events.write_text(json.dumps(event) + "\n")
    found = [_find_started(pid, project / "runs", set()) for pid in (41, 42, 43)]
    assert [run and run.name for run in found] == ["20260101-000000_a_0000", "20260101-000000_a_0001", None]
