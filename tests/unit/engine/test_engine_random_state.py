"""A task that draws from Python's, numpy's and torch's own generators resumes as if it had never stopped."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from fakes.engine_run import make_run, read_tensors
from headway.engine.loop import train
from headway.telemetry import RunDir


def drawing(run, drawn):
    """Let the task add noise of all three generators to its inputs; `drawn` gets every number."""
    plain = run.task.loss

    def loss(model, batch):
        # gauss and standard_normal keep a second number for the next call: one draw leaves them in the middle.
        numbers = random.gauss(0, 1), float(np.random.standard_normal()), float(torch.randn(()))
        drawn.append(numbers)
        return plain(model, {**batch, "x": batch["x"] + 0.1 * sum(numbers)})

    run.task.loss = loss
    return run


@pytest.mark.parametrize("stop", [1, 4, 7])
def test_a_resumed_run_draws_what_an_undisturbed_one_draws(tmp_path, stop):
    words = ["train.steps=9", "save.every=1", "lr.schedule=constant"]
    whole, parts = [], []
    train(drawing(make_run(tmp_path / "whole", *words), whole))
    train(drawing(make_run(tmp_path / "parts", *words[1:], f"train.steps={stop}"), parts))
    random.seed(99), np.random.seed(99), torch.manual_seed(99)
    again = make_run(tmp_path / "parts", *words, attempt=2)
    train(drawing(again, parts))
    assert len(whole) == 9 and parts == whole
    assert read_tensors(RunDir(tmp_path / "parts")) == read_tensors(RunDir(tmp_path / "whole"))
