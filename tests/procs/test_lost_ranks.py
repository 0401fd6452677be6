"""A rank that is lost permanently: the run continues on the others with the same batch, and takes it back."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest

from fakes.engine_run import TINY, read_tensors
from headway.checkpoint import find_resumable
from headway.task.order import Order, expected_ledger
from headway.telemetry import RunDir, read_events, read_metrics

WORDS = (TINY, "parallel.cpus=4", "batch.per_device=3", "batch.accumulation=2", "task.dropout=0", "task.ragged=true")
GONE = ("task.gone_of=4", "task.fail_rank=2", "parallel.threads=1")


def start(place, *words):
    place.mkdir(exist_ok=True)
    line = [sys.executable, "-m", "headway", "train", *WORDS, *words]
    return subprocess.Popen(line, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finish(place, process):
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    (found,) = (place / "runs").iterdir()
    return RunDir(found)


def codes(run):
    return [event["code"] for event in read_events(run.events) if event["kind"] == "warning"]


def same_weights(one, other):
    first, second = (read_tensors(run) for run in (one, other))
    names = [name for name in first if not name.startswith("rng/")]
    assert names and {name for name in second if not name.startswith("rng/")} == set(names)
    gaps = [
        np.abs(np.frombuffer(first[name], np.float32) - np.frombuffer(second[name], np.float32)).max()
        for name in names
        if len(first[name]) % 4 == 0 and name.startswith(("model/", "ema/"))
    ]
    return max(gaps)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_the_same_batch_on_fewer_ranks_is_the_same_training(tmp_path, strategy):
    words = ("train.steps=12", f"parallel.strategy={strategy}", "eval.every=6", "lr.schedule=cosine")
    quiet = finish(tmp_path / "quiet", start(tmp_path / "quiet", *words, *GONE))
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / "gone").touch()
    lost = finish(tmp_path / "lost", start(tmp_path / "lost", *words, *GONE))
    plan = json.loads(lost.plan.read_text())
    assert (plan["world_size"], plan["accumulation"], plan["micro_batch"], plan["batch_samples"]) == (3, 3, 3, 24)
    assert codes(lost).count("launch/ranks-fewer") == 1
    # Every sample once, and in the same steps: the fingerprints and the losses of all steps agree.
    first, second = (find_resumable(run.checkpoints).manifest for run in (quiet, lost))
    assert first.ledger == second.ledger
    before, after = (read_metrics(run.metrics(0)) for run in (quiet, lost))
    np.testing.assert_allclose(after["loss"], before["loss"], rtol=1e-5)
    assert list(after["lr"]) == list(before["lr"])
    assert same_weights(quiet, lost) < 1e-5


def test_a_rank_that_is_back_takes_its_part_again_when_it_is_asked_for(tmp_path):
    (tmp_path / "gone").touch()
    process = start(tmp_path, "train.steps=2000", "task.sleep_s=0.03", "launch.return_s=600", *GONE)
    try:
        wait_for(tmp_path, "ranks-fewer")
        wait_for(tmp_path, '"world_size":3')
        (tmp_path / "gone").unlink()
        asked = subprocess.run([sys.executable, "-m", "headway", "resume", "--add"], cwd=tmp_path, check=False)
        assert asked.returncode == 0
        wait_for(tmp_path, '"source":"memory"')
        time.sleep(1)
        process.terminate()  # however slow the machine was: it saves and ends
        assert process.wait(60) == 143
    finally:
        process.kill()
        process.communicate()
    (found,) = (tmp_path / "runs").iterdir()
    run = RunDir(found)
    assert codes(run).count("launch/ranks-back") == 1
    plan = json.loads(run.plan.read_text())
    assert (plan["world_size"], plan["accumulation"]) == (4, 2)
    assert "lost" not in json.loads(run.job.read_text())
    begun = [event for event in read_events(run.events) if event["kind"] == "training_started"]
    assert max(event.get("redone", 0) for event in begun) == 0 and begun[-1]["source"] == "memory"
    manifest = find_resumable(run.checkpoints).manifest
    assert int(manifest.ledger, 16) == expected_ledger(Order(97, 0), manifest.samples, [])
    assert list(read_metrics(run.metrics(0))["step"]) == list(range(1, manifest.step + 1))


def wait_for(place, words):
    until = time.monotonic() + 60
    while not any(words in one.read_text() for one in place.glob("runs/*/events.jsonl")):
        assert time.monotonic() < until, words
        time.sleep(0.05)
