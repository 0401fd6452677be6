"""The default model and data, trained by the real engine in this process: it learns, and it resumes bit for bit."""

import pytest
import torch

from fakes.engine_run import make_run, read_tensors, reports
from headway.config import load_config
from headway.engine.loop import train
from headway.recipes.layoutmaster.data import baselines, prepare
from headway.recipes.layoutmaster.preset import RECIPE
from headway.telemetry import RunDir, read_metrics

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layoutmaster-learns")
    prepare(_section(folder), lambda line: None)
    return folder


@pytest.fixture
def start(data_dir):
    """Make a rank of the recipe that is where its folder says."""
    words = ["recipe=layoutmaster", f"task.data_dir={data_dir}", "parallel.threads=1", "train.precision=fp32"]
    before = torch.get_num_threads()
    yield lambda place, *more: make_run(place, *words, *more)
    torch.set_num_threads(before)


def _section(folder):
    return load_config(recipe=RECIPE, overrides=[f"data_dir={folder}"]).config.task


def test_the_default_model_lays_out_held_out_posters_far_better_than_chance(start, data_dir, tmp_path):
    found = baselines(_section(data_dir))
    run = start(tmp_path, "train.steps=120", "eval.every=0", "save.every=0", "batch.total=16")
    assert train(run) == "done"
    (validation,) = reports(tmp_path, "validation")
    (trial,) = reports(tmp_path, "trial")
    measures = validation["measures"]
    assert 0.03 < found["random_mean_iou"] < 0.15 and found["constant_mean_iou"] < 0.3
    assert measures["mean_iou"] > 0.5 and trial["measures"]["sampled_mean_iou"] > 0.5
    assert measures["order"] > 0.9 and measures["overlap"] < 0.5


def test_the_original_maths_explodes_and_does_not_learn_on_the_same_data(start, tmp_path):
    words = [
        "train.steps=60",
        "eval.every=0",
        "save.every=0",
        "batch.total=16",
        "task.eval_steps=5",
        "task.num_steps=5",
    ]
    run = start(tmp_path, *words, "task.head_mode=original")
    train(run)
    losses = read_metrics(RunDir(tmp_path).metrics(0))["loss"]
    early, late = sum(losses[:20]) / 20, sum(losses[-20:]) / 20
    assert early > 1e6 and late > 0.05 * early
    assert reports(tmp_path, "validation")[-1]["measures"]["mean_iou"] < 0.3


def test_a_run_that_stops_and_goes_on_ends_bit_equal(start, tmp_path):
    words = [
        "batch.total=8",
        "train.samples=64",
        "eval.every=0",
        "save.every=0",
        "task.num_steps=3",
        "task.eval_steps=2",
    ]
    words += ["task.dropout=0.1", "ema.decay=0.9"]
    whole = start(tmp_path / "whole", *words)
    train(whole)
    cut = start(tmp_path / "cut", *words)
    cut.is_stop_wanted = lambda: cut.progress.step >= 3
    assert train(cut) == "stopped"
    rest = start(tmp_path / "cut", *words)
    assert 3 <= rest.progress.step < 8 and train(rest) == "done"
    one, other = read_tensors(RunDir(tmp_path / "whole")), read_tensors(RunDir(tmp_path / "cut"))
    assert one.keys() == other.keys() and [name for name in one if one[name] != other[name]] == []
