"""The guard: what it finds, what it leaves behind, and what a roll-back costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fakes.engine_run import make_run, reports
from headway.checkpoint import list_checkpoints, read_manifest
from headway.engine import snapshot
from headway.engine.loop import train
from headway.task.order import Order, count_taken, expected_ledger
from headway.telemetry import RunDir, read_metrics

LARGE = "task.samples=4999"
"""One epoch is enough, so that a bad sample is met once."""


def samples_at(*positions: int) -> list[int]:
    return Order(4999, 0).samples(np.array(positions))[0].tolist()


def guards(place) -> list[list[int]]:
    return [event["samples"] for event in reports(place, "guard")]


@pytest.mark.parametrize("policy", ["skip", "rollback"])
def test_a_bad_batch_leaves_no_trace_in_the_statistics(tmp_path, policy):
    bad = samples_at(9)
    words = (LARGE, "task.norm=true", f"task.nan_samples={bad}", f"guard.policy={policy}", "save.every=2")
    run = make_run(tmp_path, *words, "train.steps=8", "eval.every=2")
    assert train(run) == "done"
    assert guards(tmp_path) == [bad]
    assert all(value.isfinite().all() for value in run.model.buffers())
    assert all(math.isfinite(event["measures"]["mse"]) for event in reports(tmp_path, "validation"))
    assert run.model.training


def test_the_statistics_after_a_skip_are_those_of_the_good_batches(tmp_path):
    """The first micro-batch of the third step is bad, and a good one comes after it."""
    words = (LARGE, "task.norm=true", "batch.accumulation=2", "guard.policy=skip")
    run = make_run(tmp_path, *words, f"task.nan_samples={samples_at(17)}", "train.steps=3")
    train(run)
    twin = make_run(tmp_path / "twin", *words, "train.steps=2")
    train(twin)
    assert int(run.model[0][1].num_batches_tracked) == 4
    assert torch.equal(run.model[0][1].running_mean, twin.model[0][1].running_mean)


def test_two_bad_batches_behind_one_checkpoint_are_both_left_out(tmp_path):
    """Issue 19: only the best is saved, so both roll-backs go to the same step."""
    bad = samples_at(13, 22)
    words = (f"task.nan_samples={bad}", "guard.policy=rollback", "guard.limit=2", "save.keep_best=true", "eval.every=2")
    run = make_run(tmp_path, LARGE, *words, "train.steps=8", "lr.schedule=linear", "lr.base=0.0001")
    run.task.summarize = lambda sums: {"mse": 1.0}  # the first validation stays the best
    assert train(run) == "done"
    assert guards(tmp_path) == [[one] for one in bad]
    assert run.progress.skips == [(12, 16), (20, 24)] and run.progress.position == 40
    assert run.progress.ledger == expected_ledger(Order(4999, 0), 40, run.progress.skips)
    rows = read_metrics(RunDir(tmp_path).metrics(0))
    rates = dict(zip(rows["step"], rows["lr"], strict=True))
    assert [rates[step] for step in range(1, 9)] == pytest.approx([0.0001 * (8 - n) / 8 for n in range(8)])


def test_a_checkpoint_after_a_roll_back_has_no_measures_of_the_time_before(tmp_path):
    """Step 3 is validated, the run goes back from step 4 to step 2, and is stopped at the new step 3."""
    words = (f"task.nan_samples={samples_at(13)}", "guard.policy=rollback", "save.every=2", "save.keep_best=false")
    run = make_run(tmp_path, LARGE, *words, "train.steps=8", "eval.every=3")
    run.is_stop_wanted = lambda: run.progress.guard_events > 0
    assert train(run) == "stopped"
    assert [event["step"] for event in reports(tmp_path, "validation")] == [3]
    newest = list_checkpoints(run.checkpoints)[-1]
    assert (newest.step, read_manifest(newest.path).measures) == (3, {})


class Picky(nn.Module):
    """Takes no single sample in any mode."""

    def __init__(self, inner) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x):
        if len(x) == 1:
            raise ValueError("one sample is no batch")
        return self.inner(x)


def test_a_model_that_takes_no_single_sample_names_the_micro_batch(tmp_path):
    run = make_run(tmp_path, LARGE, f"task.nan_samples={samples_at(9)}", "guard.policy=skip", "train.steps=4")
    run.task.loss = lambda model, batch, plain=run.task.loss: plain(Picky(model), batch)
    assert train(run) == "done"
    assert guards(tmp_path) == [samples_at(8, 9, 10, 11)]


def test_the_search_moves_no_generator(tmp_path):
    words = (LARGE, "guard.policy=skip", "train.steps=6", "lr.base=0.0000001")
    losses = []
    for name, bad in (("clean", []), ("hit", samples_at(9))):
        train(make_run(tmp_path / name, *words, f"task.nan_samples={bad}"))
        rows = read_metrics(RunDir(tmp_path / name).metrics(0))
        losses.append(dict(zip(rows["step"], rows["loss"], strict=True)))
    for step in (4, 5, 6):
        assert losses[1][step] == pytest.approx(losses[0][step], rel=1e-4)


ranges = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda pair: (pair[0], sum(pair))), max_size=6)


@given(ranges, st.integers(0, 90))
def test_samples_taken_are_those_that_no_range_covers(skips, position):
    left = [at for at in range(position) if not any(low <= at < high for low, high in skips)]
    assert count_taken(position, skips) == len(left)


def test_a_checkpoint_of_cpu_ranks_is_resumed_on_gpus(tmp_path, monkeypatch):
    """Issue 10: a GPU's generator has no state in it, and is seeded."""
    train(make_run(tmp_path, "train.steps=3"))
    seeded = []
    plain = snapshot._rng

    def rng_on_gpu(run):
        found = plain(run)
        assert "rng/0/cuda" not in found
        return {**found, "rng/0/cuda": torch.zeros(16, dtype=torch.uint8)}

    monkeypatch.setattr(snapshot, "_rng", rng_on_gpu)
    monkeypatch.setattr(
        snapshot, "seed_everything", lambda seed, plain=snapshot.seed_everything: (seeded.append(seed), plain(seed))
    )
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda *state: pytest.fail("there is no such state"))
    run = make_run(tmp_path, "train.steps=6", attempt=2)
    assert run.progress.step == 3 and len(seeded) == 1
    saved = torch.get_rng_state()
    monkeypatch.setattr(snapshot, "_rng", plain)
    make_run(tmp_path, "train.steps=6", attempt=3)
    assert torch.equal(saved, torch.get_rng_state()), "what the checkpoint knows is put back as it was"


def test_a_trial_begins_when_what_was_saved_is_on_disk(tmp_path):
    run = make_run(tmp_path, "train.steps=6", "save.every=3", "eval.trial_every=3")
    seen = []

    def trial(model, *, part, parts):
        seen.append((run.progress.step, run.saver.poll(), run.saver.last_committed))
        return {}

    run.task.trial = trial
    assert train(run) == "done"
    assert seen == [(3, True, 3), (6, True, 6)]
