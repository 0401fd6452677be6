"""The end of a step in MindSpore: what a PyTorch run promises there, it promises too."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from command import clean_env

from fakes.tfnet_mindspore import python_of_mindspore

PYTHON = python_of_mindspore()
pytestmark = [
    pytest.mark.skipif(PYTHON is None, reason="MindSpore is not installed"),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Everything from one process: importing MindSpore takes longer than all of it."""
    place = tmp_path_factory.mktemp("lives")
    command = [PYTHON, str(Path(__file__).parents[1] / "fakes" / "mindspore_lives.py"), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, env=clean_env(place, GLOG_v="3"))
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_a_disturbed_mindspore_run_ends_like_an_undisturbed_one(found):
    assert found["lives"] == {"num": 16, "peace": [4, 2, 8], "wrong": []}


def test_a_checkpoint_holds_the_measures_of_its_own_validation_only(found):
    measures = {"2": {"mse": 1.0}, "3": {}, "4": {"mse": 0.5}, "5": {}}
    assert (found["manifests"]["measures"], found["manifests"]["described"]) == (measures, measures)


def test_a_frozen_weight_of_no_dimension_is_saved(found):
    assert found["manifests"]["factor"] == []


def test_a_filled_up_batch_counts_its_real_samples_alone(found):
    assert found["filled"]["filled"] == pytest.approx(found["filled"]["alone"], rel=1e-5)


def test_the_guard_names_the_bad_samples_and_remembers_every_range_it_left_out(found):
    seen = found["guarded"]
    told = {"what": "loss", "rank": "0", "step": "5", "samples": str(seen["bad"][0])}
    assert seen["told"] == {"stop": told, "norm": told}
    assert seen["samples"] == [[one] for one in seen["bad"]]
    assert (seen["skips"], seen["end"], seen["updates"]) == ([[16, 20], [24, 28]], "done", 6)
    assert (seen["statistics"], seen["is_finite"]) == (2, True)
    assert [seen["rates"][str(step)] for step in range(1, 9)] == pytest.approx([0.01 * (8 - n) / 8 for n in range(8)])


def test_the_guard_names_the_rank_whose_sample_it_was_on_every_rank(found):
    assert found["blamed"]["found"] == [[1, [4321]], [1, [4321]]]


def test_what_a_skipped_batch_may_have_harmed_is_suspect_and_what_was_rolled_back_is_not(found):
    # Step 8 is written again with its validation, which found nothing wrong; the first copy goes.
    assert found["guarded"]["suspects"] == {"back": [], "on": [6]}


def test_an_empty_validation_set_is_refused_before_the_first_step(found):
    assert found["empty"] == {"code": "engine/no-validation-samples"}


def test_a_validation_and_a_checkpoint_take_the_statistics_of_rank_0(found):
    assert found["shared"] == {"validated": [[1.0] * 4] * 2, "saved": [[1.0] * 4] * 2}
