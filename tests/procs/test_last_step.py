"""A run of two real ranks whose processes die or hang continues from the last finished step, and ends bit-equal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fakes.engine_run import TINY, read_tensors
from headway.telemetry import RunDir, read_beat, read_events, read_metrics

WORDS = ("train.steps=24", "batch.accumulation=2", "ema.decay=0.9", "task.norm=true", "save.every=10", "eval.every=0")
WORDS += ("save.in_memory=1", "parallel.threads=1")


def start(place, *words):
    place.mkdir()
    with (place / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "headway", "train", TINY, "out=runs", *WORDS, *words],
            cwd=place,
            stdout=log,
            stderr=log,
        )


def finish(process, place):
    """Wait for the good end; return the run."""
    assert process.wait(240) == 0, (place / "log").read_text()[-3000:]
    (job,) = place.glob("runs/*/job.json")
    return RunDir(job.parent)


def wait_beat(process, place, rank, *, step, attempt=1):
    """Return a rank's heartbeat once it has finished a step in an attempt."""
    while process.poll() is None:
        for job in place.glob("runs/*/job.json"):
            beat = read_beat(RunDir(job.parent).heartbeat(rank))
            if beat is not None and beat.attempt >= attempt and beat.step >= step:
                return beat
        time.sleep(0.005)
    pytest.fail((place / "log").read_text()[-3000:])


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def started(run):
    return [event for event in read_events(run.events) if event["kind"] == "training_started"]


def same(run, quiet):
    assert read_tensors(run) == read_tensors(quiet)
    assert list(read_metrics(run.metrics(0))["loss"]) == list(read_metrics(quiet.metrics(0))["loss"])
    assert list(read_metrics(run.metrics(1))["step"]) == list(range(1, 25))


@pytest.mark.parametrize("strategy", ["fsdp"])
def test_ranks_killed_twice_at_once_and_a_lost_nursery_cost_a_step_each(tmp_path, strategy):
    words = (f"parallel.strategy={strategy}", "task.sleep_s=0.03", "task.norm=false")
    quiet = finish(start(tmp_path / "quiet", f"parallel.strategy={strategy}", "task.norm=false"), tmp_path / "quiet")
    place = tmp_path / "storm"
    process = start(place, *words)
    os.kill(wait_beat(process, place, 1, step=4).pid, signal.SIGKILL)
    os.kill(wait_beat(process, place, 0, step=0, attempt=2).pid, signal.SIGKILL)  # it has hardly begun
    os.kill(parent_of(wait_beat(process, place, 0, step=14, attempt=3).pid), signal.SIGKILL)
    run = finish(process, place)
    same(run, quiet)
    found = [(event["source"], event["redone"] <= 1) for event in started(run)[1:]]
    assert set(found) == {("memory", True)}


def test_a_hung_rank_is_named_and_restarted_from_the_last_step(tmp_path):
    quiet = finish(start(tmp_path / "quiet"), tmp_path / "quiet")
    place = tmp_path / "hung"
    run = finish(start(place, "task.hang_step=21", "task.sleep_s=0.03"), place)
    same(run, quiet)
    (hang,) = [event for event in read_events(run.events) if event["kind"] == "hang"]
    assert (hang["rank"], hang["class"], hang["policy"]) == (1, "rank-behind", "restart")
    assert any("hang_once" in frame for frame in hang["ranks"][1]["stack"])
    assert hang["ranks"][0]["stack"]
    assert [(one["source"], one["redone"]) for one in started(run)[1:]] == [("memory", 0)]
