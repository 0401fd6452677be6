"""A machine is lost with its disk: the run continues elsewhere from the copy of its checkpoints, bit for bit."""

from __future__ import annotations

import shutil

import pytest
from command import TINY, events, headway, only_run
from safetensors.numpy import load_file

from headway.checkpoint import find_resumable, list_checkpoints

LENGTH = ("train.steps=10", "save.every=2", "parallel.cpus=1", "launch.restarts=0")


def weights(place) -> dict[str, bytes]:
    done = headway(place, "ckpt", "export", "--to", "weights.safetensors")
    assert done.returncode == 0, done.stderr
    return {name: array.tobytes() for name, array in load_file(place / "weights.safetensors").items()}


@pytest.mark.slow
def test_a_lost_machine_s_run_continues_on_another_one_with_the_same_weights(tmp_path):
    first, second, plain, disk = (tmp_path / name for name in ("first", "second", "plain", "disk"))
    for place in (first, second, plain, disk):
        place.mkdir()
    words = (TINY, *LENGTH, "task.fail_rank=0")
    failed = headway(first, "train", *words, "task.fail_step=7", f"save.mirror={disk}")
    assert failed.returncode == 5, failed.stderr
    run = only_run(first)
    assert "checkpoint copied to" in failed.stderr
    newest = find_resumable(run.checkpoints).manifest.step
    assert newest in [event["step"] for event in events(run, "checkpoint_mirrored")]
    shutil.rmtree(first)
    done = headway(second, "ckpt", "fetch", f"{disk}/{run.name}")
    assert done.returncode == 0, done.stderr
    assert [info.step for info in list_checkpoints(second / "runs" / run.name / "checkpoints")] == [newest]
    assert "headway trust" in headway(second, "resume", run.name).stderr  # a config from elsewhere names code
    assert headway(second, "trust", TINY).returncode == 0
    done = headway(second, "resume", run.name, "task.fail_step=0")
    assert done.returncode == 0, done.stderr
    assert find_resumable(disk / run.name / "checkpoints").manifest.step == 10
    assert headway(plain, "train", TINY, *LENGTH).returncode == 0
    assert weights(second) == weights(plain)


def test_a_mirror_that_cannot_be_used_is_refused_before_anything_starts(tmp_path):
    refused = headway(tmp_path, "train", TINY, f"save.mirror={tmp_path}/not-mounted")
    assert refused.returncode == 2 and "mirror/no-folder" in refused.stderr
    assert not (tmp_path / "runs").exists()
    refused = headway(tmp_path, "train", TINY, "save.mirror=backup")
    assert refused.returncode == 2 and "save.mirror=/mnt/backup" in refused.stderr
