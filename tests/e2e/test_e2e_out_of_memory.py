"""A batch that does not fit comes in smaller pieces, and the training stays the same one."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest
from command import TINY, clean_env, headway

from fakes.engine_run import read_tensors
from headway.telemetry import RunDir, read_events

LENGTH = ("train.steps=6", "save.every=2", "eval.every=3", "parallel.cpus=2")


def run_of(place, name):
    (found,) = (place / "runs").glob(f"*_{name}_*")
    return RunDir(found)


def events(run, kind):
    return [event for event in read_events(run.events) if event["kind"] == kind]


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_one_rank_out_of_memory_in_its_backward_ends_as_a_run_of_that_size_does(tmp_path, strategy):
    words = (TINY, *LENGTH, f"parallel.strategy={strategy}")
    done = headway(tmp_path, "train", *words, "batch.per_device=8", "task.oom_above=3", "name=large")
    assert done.returncode == 0, done.stderr
    small = headway(tmp_path, "train", *words, "batch.per_device=2", "batch.total=16", "name=small")
    assert small.returncode == 0, small.stderr
    large = run_of(tmp_path, "large")
    assert read_tensors(large) == read_tensors(run_of(tmp_path, "small"))
    assert [(one["rank"], one["class"], one["action"]) for one in events(large, "incident")] == [
        (1, "device-out-of-memory", "restart")
    ] * 2
    told = [(one["code"], one["facts"]) for one in events(large, "warning") if "batch" in one["code"]]
    assert [code for code, _ in told] == ["launch/batch-reduced"] * 2 + ["engine/batch-neutral"]
    assert [(facts["before"], facts["after"], facts["batch"]) for _, facts in told[:2]] == [(8, 4, 16), (4, 2, 16)]
    assert float(told[2][1]["difference"]) < 1e-5
    # A later resume does not go back to the size that failed.
    more = headway(tmp_path, "resume", large.root.name, "train.steps=8")
    assert more.returncode == 0 and len(events(large, "incident")) == 2
    assert json.loads(large.plan.read_text())["micro_batch"] == 2


def test_what_a_smaller_batch_would_change_is_not_done_without_a_word(tmp_path):
    words = ("train", TINY, *LENGTH, "batch.per_device=8", "task.oom_above=4", "task.norm=true")
    refused = headway(tmp_path, *words, "name=norm")
    assert refused.returncode == 5 and "engine/batch-norm-not-neutral" in refused.stderr + refused.stdout
    assert "launch.on_oom=always" in refused.stderr + refused.stdout
    agreed = headway(tmp_path, *words, "launch.on_oom=always", "name=agreed")
    assert agreed.returncode == 0, agreed.stderr
    stopped = headway(tmp_path, *words, "launch.on_oom=stop", "name=stopped")
    assert stopped.returncode == 5 and len(events(run_of(tmp_path, "stopped"), "incident")) == 1


def test_the_machines_own_memory_runs_out(tmp_path):
    """Eight samples of a gigabyte each do not fit into seven gigabytes of addresses; four or two of them do."""
    line = [sys.executable, "-m", "headway", "train", TINY, "train.steps=2", "parallel.cpus=1", "batch.per_device=8"]
    limit = 7 << 30
    done = subprocess.run(
        [*line, "task.hold_mb=1024", "name=host"],
        cwd=tmp_path,
        env=clean_env(tmp_path),
        capture_output=True,
        text=True,
        timeout=240,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert done.returncode == 0, done.stderr
    incidents = events(run_of(tmp_path, "host"), "incident")
    assert incidents and {one["class"] for one in incidents} == {"host-out-of-memory"}
    assert json.loads(run_of(tmp_path, "host").plan.read_text())["micro_batch"] in (4, 2, 1)
