"""One step both ways: what a smaller micro-batch changes is found, and rounding is not called a change."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from fakes.engine_run import make_run, reports
from headway.engine import neutral
from headway.engine.loop import train
from headway.engine.precision import Precision
from headway.errors import TrainError
from headway.task.order import Order


def warning(place):
    (event,) = reports(place, "warning")
    return event["code"], event["facts"]


@pytest.mark.parametrize("more", [(), ("task.ragged=true",), ("task.dropout=0.5",)])
def test_a_sum_over_samples_is_neutral_to_rounding(tmp_path, more):
    run = make_run(tmp_path, "batch.per_device=5", "train.steps=4", *more)
    neutral.prove(run, before=10, is_agreed=False)
    code, facts = warning(tmp_path)
    assert code == "engine/batch-neutral" and float(facts["difference"]) < 1e-5
    assert (facts["before"], facts["after"], facts["other"]) == (10, 5, 3)


def test_the_proof_leaves_no_trace(tmp_path):
    words = ("batch.per_device=4", "train.steps=4", "task.norm=true", "save.every=1")
    plain, proven = make_run(tmp_path / "a", *words), make_run(tmp_path / "b", *words)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    neutral.prove(proven, before=8, is_agreed=True)
    assert torch.equal(torch.get_rng_state(), before[0]) and random.getstate() == before[1]
    assert np.random.get_state()[1].tolist() == before[2]
    for one, other in zip(plain.buffers, proven.buffers, strict=True):
        assert torch.equal(one, other)
    train(plain)
    state = torch.get_rng_state()
    torch.set_rng_state(before[0])
    train(proven)
    assert torch.equal(torch.get_rng_state(), state)
    for one, other in zip(plain.model.parameters(), proven.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_batch_norm_needs_a_word_of_the_user(tmp_path):
    run = make_run(tmp_path, "batch.per_device=4", "task.norm=true")
    with pytest.raises(TrainError) as refused:
        neutral.prove(run, before=8, is_agreed=False)
    assert refused.value.code == "engine/batch-norm-not-neutral" and "BatchNorm1d" in refused.value.text()
    assert "launch.on_oom=always" in refused.value.hint()
    neutral.prove(run, before=8, is_agreed=True)
    assert warning(tmp_path)[0] == "engine/batch-norm-not-neutral"


def test_a_mean_of_means_is_found(tmp_path):
    run = make_run(tmp_path, "batch.per_device=4", "task.is_mean=true")
    with pytest.raises(TrainError) as refused:
        neutral.prove(run, before=8, is_agreed=False)
    assert refused.value.code == "engine/batch-not-neutral"


def test_a_loss_that_draws_random_numbers_is_measured_against_itself(tmp_path):
    run = make_run(tmp_path, "batch.per_device=4")
    plain = run.task.loss
    run.task.loss = lambda model, batch: plain(model, {**batch, "x": batch["x"] + torch.randn_like(batch["x"])})
    neutral.prove(run, before=8, is_agreed=False)
    assert warning(tmp_path)[0] == "engine/batch-neutral-noisy"


def test_a_loss_scale_that_is_still_too_large_says_nothing_about_the_micro_batch(tmp_path):
    """A run in fp16 begins with a large scale and halves it in its first steps; those may be out of memory."""
    run = make_run(tmp_path, "batch.per_device=4")
    run.precision = Precision("fp16", run.ranks.device)
    run.precision.scale = 2.0**40
    neutral.prove(run, before=8, is_agreed=False)
    code, facts = warning(tmp_path)
    assert code == "engine/batch-neutral" and float(facts["difference"]) < 3e-2
    assert run.precision.scale == 2.0**40


def test_a_sample_that_is_no_number_says_nothing_about_the_micro_batch(tmp_path):
    order = Order(97, 0)
    first, every = int(order.samples(np.arange(1))[0][0]), list(range(97))
    run = make_run(tmp_path / "one", "batch.per_device=4", f"task.nan_samples=[{first}]")
    neutral.prove(run, before=8, is_agreed=False)
    assert warning(tmp_path / "one")[0] == "engine/batch-neutral"
    run = make_run(tmp_path / "all", "batch.per_device=4", f"task.nan_samples={every}")
    neutral.prove(run, before=8, is_agreed=False)
    assert warning(tmp_path / "all")[0] == "engine/batch-not-finite"


def test_one_sample_at_a_time_cannot_be_compared_and_says_so(tmp_path):
    neutral.prove(make_run(tmp_path, "batch.per_device=1"), before=2, is_agreed=False)
    assert warning(tmp_path)[0] == "engine/batch-not-compared"
