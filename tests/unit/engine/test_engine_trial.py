"""Trials: whatever happens in one on one rank, all ranks come out of it with the same word."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fakes.ranks import run_ranks
from headway.engine.evaluate import run_trial
from headway.engine.precision import Precision
from headway.task import hash_frozen


class Trials:
    """A task of which only the trial matters; `second` is what rank 1 does."""

    def __init__(self, second: str) -> None:
        self.second = second

    def trial(self, model, *, part, parts):
        if part == 1 and self.second == "raises":
            raise ValueError("no simulator here")
        if part == 1 and self.second == "leaves":
            raise SystemExit(3)
        if part == 1 and self.second == "nothing":
            return {}
        if part == 1 and self.second == "none":
            return None
        more = {"more": torch.tensor(1.0)} if part == 1 and self.second == "more" else {}
        return {"score": torch.tensor(2.0), **more}

    def summarize_trial(self, sums):
        if self.second == "sums":
            raise ZeroDivisionError
        return dict(sums)


def trial_on(ranks, second):
    found = run_trial(Trials(second), nn.Linear(1, 1), ranks=ranks, precision=Precision("fp32", ranks.device))
    return repr(found)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("second", "first_sees"),
    [
        ("both", "{'score': 4.0}"),
        ("nothing", "{'score': 2.0}"),
        ("none", "{'score': 2.0}"),
        ("more", "{'more': 1.0, 'score': 4.0}"),
        ("raises", "RuntimeError(\"rank 1: ValueError('no simulator here')\")"),
        ("leaves", "RuntimeError('rank 1: SystemExit(3)')"),
        ("sums", "ZeroDivisionError()"),
    ],
)
def test_a_trial_ends_on_every_rank_whatever_one_of_them_does(second, first_sees):
    assert run_ranks(trial_on, 2, second)[0] == first_sees


def test_a_frozen_weight_of_no_dimension_has_a_fingerprint():
    model = nn.Module()
    model.scale = nn.Parameter(torch.tensor(2.0), requires_grad=False)
    other = nn.Module()
    other.scale = nn.Parameter(torch.tensor(3.0), requires_grad=False)
    assert hash_frozen(model) and hash_frozen(model) != hash_frozen(other)
