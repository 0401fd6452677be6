"""A run that has saved does not begin again at step 0 by itself: unreadable is not absent (issue 10.2, 10.14)."""

from __future__ import annotations

import errno
import os
import shutil

import pytest
import torch

from fakes.engine_run import make_run, reports
from headway.checkpoint import list_checkpoints, search
from headway.engine.loop import train
from headway.errors import CheckpointError, TrainError
from headway.telemetry import EventLog, RunDir


def damage(place, *, step=None):
    """Cut one byte off a shard of every checkpoint, or of one."""
    for info in list_checkpoints(RunDir(place).checkpoints):
        if step in (None, info.step):
            shard = info.path / "rank-00000.safetensors"
            os.truncate(shard, shard.stat().st_size - 1)


def note(place, kind, **facts):
    """Write an event as the supervisor would."""
    log = EventLog(RunDir(place).events)
    log.append(kind, **facts)
    log.close()


def test_a_run_none_of_whose_checkpoints_passes_does_not_begin_again(tmp_path):
    train(make_run(tmp_path, "train.steps=6", "save.every=3"))
    damage(tmp_path)
    with pytest.raises(CheckpointError) as refused:
        make_run(tmp_path, "train.steps=9", attempt=2)
    assert refused.value.code == "checkpoint/none-resumable"
    assert "--from-scratch" in refused.value.hint() and "step-00000006" in refused.value.text()


def test_a_run_whose_checkpoints_are_gone_does_not_begin_again(tmp_path):
    train(make_run(tmp_path, "train.steps=3"))
    note(tmp_path, "checkpoint_committed", step=3)
    shutil.rmtree(RunDir(tmp_path).checkpoints)
    with pytest.raises(CheckpointError) as refused:
        make_run(tmp_path, "train.steps=9", attempt=2)
    assert refused.value.code == "checkpoint/all-gone"


def test_a_run_told_to_begins_at_step_0_until_it_has_saved_again(tmp_path):
    train(make_run(tmp_path, "train.steps=6", "save.every=3"))
    damage(tmp_path)
    note(tmp_path, "run_resumed", from_scratch=True)
    assert make_run(tmp_path, "train.steps=9", attempt=2).progress.step == 0
    note(tmp_path, "checkpoint_committed", step=2)
    with pytest.raises(CheckpointError):
        make_run(tmp_path, "train.steps=9", attempt=3)


@pytest.fixture
def failing_reads(monkeypatch):
    """Let reads of shards, manifests and folders fail with EIO, so many times."""
    left = [0]

    def fail_first(call):
        def read(*args, **kwargs):
            if left[0] > 0:
                left[0] -= 1
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return call(*args, **kwargs)

        return read

    for name in ("preadv", "listdir"):
        monkeypatch.setattr(os, name, fail_first(getattr(os, name)))
    monkeypatch.setattr(search, "_FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(search, "_LAST_WAIT_S", 0.001)
    return left


@pytest.mark.parametrize("times", [1, 2, 3, 5, 8])
def test_a_disk_that_comes_back_is_waited_for(tmp_path, failing_reads, times):
    train(make_run(tmp_path, "train.steps=6", "save.every=3"))
    failing_reads[0] = times
    run = make_run(tmp_path, "train.steps=9", attempt=2)
    assert run.progress.step == 6 and not reports(tmp_path, "checkpoint_skipped") and failing_reads[0] == 0


def test_a_disk_that_stays_away_ends_the_run_with_a_word(tmp_path, failing_reads, monkeypatch):
    train(make_run(tmp_path, "train.steps=6", "save.every=3"))
    monkeypatch.setattr(search, "PATIENCE_S", 0.05)
    failing_reads[0] = 10**6
    with pytest.raises(CheckpointError) as refused:
        make_run(tmp_path, "train.steps=9", attempt=2)
    assert refused.value.code in ("checkpoint/none-resumable", "checkpoint/unreadable")


def test_a_checkpoint_that_did_not_pass_is_not_kept_in_place_of_one_that_does(tmp_path):
    train(make_run(tmp_path, "train.steps=6", "save.every=3"))
    damage(tmp_path, step=6)
    run = make_run(tmp_path, "train.steps=6", "save.every=3", "save.keep_last=2", attempt=2)
    assert run.progress.step == 3
    train(run)
    names = [info.path.name for info in list_checkpoints(run.checkpoints)]
    assert names == ["step-00000003", "step-00000006.r1"]


def test_an_average_that_a_resume_switches_on_begins_with_the_weights_of_the_checkpoint(tmp_path):
    train(make_run(tmp_path, "train.steps=3"))
    run = make_run(tmp_path, "train.steps=6", "ema.decay=0.9", attempt=2)
    weights = dict(run.model.named_parameters())
    assert run.ema.updates == 0
    assert all(torch.equal(average, weights[name]) for name, average in run.ema.state().items())
    assert train(run) == "done"
    again = make_run(tmp_path, "train.steps=7", "ema.decay=0.9", attempt=3)
    assert again.ema.updates == 3
    assert any(not torch.equal(average, weights[name]) for name, average in again.ema.state().items())


def test_a_change_that_the_checkpoint_does_not_fit_is_named_with_the_words_that_put_it_back(tmp_path):
    train(make_run(tmp_path, "train.steps=3"))
    changes = {
        "optimizer.name": ["adamw", "sgd"],
        "task.width": [16, 8],
        "plan.total_steps": [3, 6],
        "lr.decay": [None, 1],
    }
    note(tmp_path, "run_resumed", changes=changes)
    with pytest.raises(TrainError) as refused:
        make_run(tmp_path, "train.steps=6", "optimizer.name=sgd", "task.width=8", attempt=2)
    assert refused.value.code == "engine/change-does-not-fit"
    assert f"headway resume {tmp_path.name} optimizer.name=adamw task.width=16 lr.decay=null" in refused.value.hint()


def test_a_change_that_does_not_fit_is_still_named_by_the_resumes_after_it(tmp_path):
    train(make_run(tmp_path, "train.steps=3"))
    note(tmp_path, "run_resumed", changes={"seed": [1, 2]})
    note(tmp_path, "checkpoint_committed", step=3)
    note(tmp_path, "run_resumed", changes={"task.width": [16, 8], "lr.base": [0.1, 0.2]})
    note(tmp_path, "run_resumed", changes={"task.width": [8, 9], "lr.base": [0.2, 0.1]})
    note(tmp_path, "run_resumed", changes={})
    with pytest.raises(TrainError) as refused:
        make_run(tmp_path, "task.width=9", attempt=2)
    assert refused.value.hint().endswith(f"headway resume {tmp_path.name} task.width=16")
