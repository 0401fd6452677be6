"""Replicas and shards through everything a run may meet, alone and together: the same losses, and exact resumes.

`bench/fsdp_matrix.py` does the same for every recipe.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fakes.rank_lives import Life, live_on
from headway.checkpoint import find_resumable, read_manifest
from headway.engine import trained
from headway.task.order import Order, expected_ledger

pytestmark = pytest.mark.timeout(900)
COMMON = ("train.steps=8", "task.samples=4999", "task.held_out=9", "task.norm=true", "lr.schedule=linear")
ALL = ("eval.every=3", "ema.decay=0.9", "batch.per_device=2", "batch.accumulation=2", "save.every=2")
SKIP = ("guard.policy=skip", "optimizer.name=muon")
# Only the best is saved, so a roll-back goes to before an earlier one.
BACK = ("eval.every=3", "ema.decay=0.9", "guard.policy=rollback", "lr.base=0.001")
STRATEGIES = ("ddp", "fsdp")


def make_lives(place: Path) -> dict[str, Life]:
    """Return the lives of two ranks by name, in their order."""
    lives = {}
    for strategy in STRATEGIES:
        words = (*COMMON, f"parallel.strategy={strategy}")
        # Positions 17 and 47: rank 0 in the third step, the second micro-batch of rank 1 in the sixth.
        skip = Life(str(place / f"{strategy}-skip"), (*words, *ALL, *SKIP), poison=(17, 47))
        cut = replace(skip, place=str(place / f"{strategy}-cut"))
        lives[f"{strategy}-plain"] = Life(str(place / f"{strategy}-plain"), words)
        lives[f"{strategy}-bf16"] = Life(str(place / f"{strategy}-bf16"), (*words, "train.precision=bf16"))
        lives[f"{strategy}-skip"] = skip
        lives[f"{strategy}-cut"] = replace(cut, stop_at=5)
        lives[f"{strategy}-resumed"] = replace(cut, attempt=2)
        # Positions 29 and 46: rank 1 in the fourth step, rank 1 in what is the fifth after the first roll-back.
        back = Life(str(place / f"{strategy}-back"), (*words, *BACK), poison=(29, 46), poison_in="gradient")
        lives[f"{strategy}-back"] = back
    return lives


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("matrix")


@pytest.fixture(scope="module")
def two(place):
    """Return what the lives of two ranks have come to."""
    lives = make_lives(place)
    return dict(zip(lives, live_on(2, list(lives.values())), strict=True))


@pytest.fixture(scope="module")
def four(place, two):
    """Return lives of four ranks: in peace, stopped, resumed; and two checkpoints of two ranks, of either strategy."""
    words = (*COMMON, "eval.every=3", "ema.decay=0.9", "save.every=5")
    peace = Life(str(place / "peace"), words)
    cut = Life(str(place / "cut"), words)
    lives = {"peace": peace, "cut": replace(cut, stop_at=6), "resumed": replace(cut, attempt=2)}
    for strategy, other in zip(STRATEGIES, STRATEGIES[::-1], strict=True):
        more = (*COMMON, *ALL, *SKIP, f"parallel.strategy={other}", "batch.accumulation=1", "train.steps=12")
        lives[f"{strategy}-to-{other}"] = Life(str(place / f"{strategy}-cut"), more, attempt=3)
    return dict(zip(lives, live_on(4, list(lives.values())), strict=True))


def assert_equal_runs(one, other):
    assert (one["end"], one["steps"], one["place"]) == (other["end"], other["steps"], other["place"])
    assert one["losses"] == pytest.approx(other["losses"], rel=1e-5, abs=1e-5)
    assert one["rates"] == other["rates"]
    assert [row[0] for row in one["validations"]] == [row[0] for row in other["validations"]]
    for mine, theirs in zip(one["validations"], other["validations"], strict=True):
        assert mine[1] == pytest.approx(theirs[1], rel=1e-4)


@pytest.mark.parametrize("name", ["plain", "skip", "cut", "resumed", "back"])
def test_shards_train_as_replicas_do(two, name):
    assert two[f"ddp-{name}"]["end"] == ("stopped" if name == "cut" else "done")
    assert_equal_runs(two[f"fsdp-{name}"], two[f"ddp-{name}"])


def test_batch_norm_trains_sharded_in_bf16_as_replicas_do(two):
    one, other = two["fsdp-bf16"], two["ddp-bf16"]
    assert (one["end"], one["place"], one["rates"]) == (other["end"], other["place"], other["rates"])
    assert one["end"] == "done"
    assert one["losses"] == pytest.approx(other["losses"], rel=1e-3)
    for name, values in other["buffers"].items():
        assert one["buffers"][name] == pytest.approx(values, rel=1e-2, abs=1e-3), name


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_stop_changes_nothing_under_any_layout(two, strategy):
    whole, parts = two[f"{strategy}-skip"], two[f"{strategy}-resumed"]
    for what in ("losses", "rates", "place", "buffers", "validations"):
        assert parts[what] == whole[what], what


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_skipped_batch_leaves_no_trace_and_its_sample_is_named(two, strategy):
    found = two[f"{strategy}-skip"]
    ids = Order(4999, 0).samples(torch.tensor([17, 47]).numpy())[0].tolist()
    assert [(event["step"], event["rank"], event["what"]) for event in found["guard"]] == [
        (3, 0, "loss"),
        (6, 1, "loss"),
    ]
    # Sharded layers need all ranks for a single sample; there the micro-batch is named.
    named = [event["samples"] for event in found["guard"]]
    assert named == [[one] for one in ids] if strategy == "ddp" else all(map(lambda a, b: b in a, named, ids))
    assert found["place"][2] == 6
    assert all(math.isfinite(value) for values in found["buffers"].values() for value in values)
    assert all(math.isfinite(row[1]["mse"]) for row in found["validations"])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_roll_back_remembers_every_range_and_costs_no_learning_rate(two, strategy):
    found, plain = two[f"{strategy}-back"], two[f"{strategy}-plain"]
    assert [event["what"] for event in found["guard"]] == ["gradient", "gradient"]
    assert [event["rank"] for event in found["guard"]] == [1, 1]
    step, position, _, ledger, skips = found["place"]
    assert (step, position, skips) == (8, 80, [[24, 32], [40, 48]])
    assert ledger == expected_ledger(Order(4999, 0), 80, [tuple(pair) for pair in skips])
    last = dict(zip(found["steps"], found["rates"], strict=True))
    assert [last[n] for n in range(1, 9)] == pytest.approx([rate / 10 for rate in plain["rates"]])


def test_four_ranks_resume_their_statistics_exactly(four):
    for what in ("losses", "place", "buffers", "validations"):
        assert four["resumed"][what] == four["peace"][what], what
    assert four["cut"]["end"] == "stopped"


def test_a_validation_is_what_eval_finds_in_its_checkpoint(place, four):
    before = torch.get_num_threads()
    try:
        found = trained._answer({"run_dir": str(place / "peace"), "do": "eval"})
    finally:
        torch.set_num_threads(before)
    assert found["step"] == 8
    assert found["measures"] == pytest.approx(four["peace"]["validations"][-1][1], rel=1e-6)
    path = find_resumable(place / "peace" / "checkpoints").path
    assert read_manifest(path).world_size == 4


def test_checkpoints_of_either_layout_continue_in_the_other_on_more_ranks(two, four):
    one, other = four["ddp-to-fsdp"], four["fsdp-to-ddp"]
    assert one["steps"][-4:] == [9, 10, 11, 12] and one["place"][:2] == [12, 96]
    assert_equal_runs(one, other)
    before = two["ddp-resumed"]["losses"]
    assert one["losses"][: len(before)] == before
