"""A run whose checkpoints have rotted, as its user meets it (issue 10.2 and 10.14)."""

from __future__ import annotations

import os
import shutil

from command import TINY, events, headway, only_run

from headway.checkpoint import list_checkpoints


def damage(run, *, step=None):
    """Cut one byte off a shard of every checkpoint, or flip the last one of a single step."""
    for info in list_checkpoints(run.checkpoints):
        shard = info.path / "rank-00000.safetensors"
        if step is None:
            os.truncate(shard, shard.stat().st_size - 1)
        elif info.step == step:
            data = bytearray(shard.read_bytes())
            data[-1] ^= 1
            shard.write_bytes(data)


def test_a_run_whose_checkpoints_have_rotted(tmp_path):
    done = headway(tmp_path, "train", TINY, "parallel.cpus=1", "train.steps=8", "save.every=4", "eval.every=4")
    assert done.returncode == 0, done.stderr
    run = only_run(tmp_path)

    # The last one has rotted: what is measured is said, with its reason, and the end is trained again.
    damage(run, step=8)
    measured = headway(tmp_path, "eval", "--json")
    assert measured.returncode == 0 and '"step": 4' in measured.stdout and "step-00000008" in measured.stderr
    again = headway(tmp_path, "resume")
    assert again.returncode == 0, again.stderr
    assert "resumes from step 4" in again.stderr and "step-00000008 is not used" in again.stderr
    assert events(run, "training_started")[-1]["step"] == 4
    assert list_checkpoints(run.checkpoints)[-1].path.name == "step-00000008.r1"
    refused = headway(tmp_path, "resume", "--from-scratch")
    assert refused.returncode == 2 and "[cli/scratch-not-needed]" in refused.stderr

    # All of them have rotted: nothing begins again at step 0, and nothing is written or removed.
    damage(run)
    kept = {path.name for path in run.checkpoints.iterdir()}
    history = run.events.read_bytes()
    for words in (("resume",), ("resume", "train.steps=12"), ("eval",)):
        refused = headway(tmp_path, *words)
        assert refused.returncode == 5, (words, refused.stderr)
        assert "--from-scratch" in refused.stderr or words == ("eval",)
    assert {path.name for path in run.checkpoints.iterdir()} == kept and run.events.read_bytes() == history
    shutil.move(run.checkpoints, tmp_path / "unmounted")
    refused = headway(tmp_path, "resume", "train.steps=12")
    assert refused.returncode == 5 and "[checkpoint/all-gone]" in refused.stderr
    shutil.move(tmp_path / "unmounted", run.checkpoints)

    # The user says so.
    anew = headway(tmp_path, "resume", "--from-scratch", "train.steps=4")
    assert anew.returncode == 0, anew.stderr
    assert events(run, "training_started")[-1]["step"] == 0
    assert events(run, "run_resumed")[-1]["from_scratch"] is True
