"""Runs on real cards, as users start them. Without CUDA they are skipped; HEADWAY_SUITE_ON=cpu runs them on CPU ranks.

python -m pytest tests/gpu
HEADWAY_SUITE_ON=cpu python -m pytest tests/gpu
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import warnings
from pathlib import Path

import pytest
import torch
from command import events, headway, only_run, start, wait_for_step

from gpu.conftest import ON_CPU, devices
from headway.telemetry import read_beat, read_metrics, run_state

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import recipe_speed

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]
SIZES = {
    "nanochat": ("task.depth=2", "task.max_seq_len=64"),
    "layoutmaster": ("task.hidden_dim=32", "task.num_layers=2", "task.num_heads=2", "task.num_steps=2"),
    "rdt": ("task.hidden_size=16", "task.depth=2", "task.num_heads=2", "task.rollout.episodes=0"),
    "tfnet": ("task.framework=torch",),
    "atlas": (),
}
SHORT = ("train.steps=20", "eval.every=10", "eval.samples=4", "save.every=10")
SMALL = ("nanochat", *SIZES["nanochat"], *SHORT)


def losses(place, rank: int = 0) -> list[float]:
    return [float(value) for value in read_metrics(only_run(place).metrics(rank))["loss"]]


def train(place, *words: str, number: int = 1):
    place.mkdir(exist_ok=True)
    done = headway(place, "train", *words, devices(number))
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("recipe", sorted(SIZES))
def test_every_recipe_trains_validates_saves_and_is_evaluated(tmp_path, recipe):
    train(tmp_path, recipe, *SIZES[recipe], *SHORT)
    run = only_run(tmp_path)
    assert run_state(run).state == "done"
    assert len(losses(tmp_path)) == 20 and all(map(math.isfinite, losses(tmp_path)))
    assert [event["step"] for event in events(run, "validation")] == [10, 20]
    measured = headway(tmp_path, "eval", str(run.root), "--json")
    assert measured.returncode == 0, measured.stderr
    assert json.loads(measured.stdout)["step"] == 20


def test_the_curve_is_that_of_a_cpu(tmp_path):
    train(tmp_path / "there", *SMALL, "train.precision=fp32", "train.tf32=false")
    (tmp_path / "here").mkdir()
    done = headway(tmp_path / "here", "train", *SMALL, "train.precision=fp32", "parallel.cpus=1", "parallel.gpus=0")
    assert done.returncode == 0, done.stderr
    here, there = losses(tmp_path / "here"), losses(tmp_path / "there")
    # Initial weights are drawn on the device: the first losses are of the same size, and both curves fall.
    assert there[0] == pytest.approx(here[0], rel=0.1) and there[-1] < there[0] and here[-1] < here[0]


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_trains(tmp_path, precision):
    if ON_CPU and precision == "fp16":
        pytest.skip("fp16 needs a GPU")
    train(tmp_path, *SMALL, f"train.precision={precision}")
    assert all(map(math.isfinite, losses(tmp_path)))


def test_a_killed_rank_resumes_and_comes_to_the_end(tmp_path):
    process = start(tmp_path, "train", *SMALL, "train.steps=200", "save.every=5", devices(1))
    run = wait_for_step(tmp_path, 8, 120)
    os.kill(read_beat(run.heartbeat(0)).pid, signal.SIGKILL)
    assert process.wait(300) == 0
    assert list(read_metrics(run.metrics(0))["step"]) == list(range(1, 201))
    assert len(events(run, "attempt_started")) == 2


def test_a_deterministic_run_is_the_same_twice(tmp_path):
    for name in ("one", "two"):
        train(tmp_path / name, *SMALL, "train.deterministic=true")
    assert losses(tmp_path / "one") == losses(tmp_path / "two")


@pytest.mark.gpu(2)
def test_shards_train_as_replicas_do(tmp_path):
    for strategy in ("ddp", "fsdp"):
        words = (f"parallel.strategy={strategy}", "train.precision=fp32", "batch.accumulation=2")
        train(tmp_path / strategy, *SMALL, *words, number=2)
    assert losses(tmp_path / "ddp") == pytest.approx(losses(tmp_path / "fsdp"), rel=1e-3)


@pytest.mark.gpu(2)
def test_state_in_host_memory_trains_as_on_the_cards(tmp_path):
    for name in ("false", "true"):
        words = ("parallel.strategy=fsdp", "train.precision=fp32", f"parallel.offload={name}")
        train(tmp_path / name, *SMALL, *words, number=2)
    assert losses(tmp_path / "true") == pytest.approx(losses(tmp_path / "false"), rel=1e-3)


@pytest.mark.gpu(2)
def test_replicas_continue_as_shards_and_as_one(tmp_path):
    train(tmp_path, *SMALL, number=2)
    run = only_run(tmp_path)
    for steps, words in ((30, ("parallel.strategy=fsdp", devices(2))), (40, ("parallel.strategy=single", devices(1)))):
        done = headway(tmp_path, "resume", str(run.root), f"train.steps={steps}", *words)
        assert done.returncode == 0, done.stderr
    assert list(read_metrics(run.metrics(0))["step"]) == list(range(1, 41))


@pytest.mark.skipif(ON_CPU, reason="asks the card")
def test_the_host_waits_once_in_a_step(tmp_path):
    """What bench/gpu_waits.py counts on a stand-in, by CUDA's own word."""
    _, run = recipe_speed.make_run("nanochat", tmp_path)
    steps = recipe_speed.headway_loop(run)
    steps(2)
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            steps(5)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert sum("synchronizing" in str(one.message) for one in heard) <= 5
