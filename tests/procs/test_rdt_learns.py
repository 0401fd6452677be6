"""RDT through the real engine, one rank in this process: it learns, resumes bit for bit, exports, outlives trials."""

import json

import pytest
import torch
from safetensors.torch import load_file

from fakes.engine_run import make_run, read_tensors, reports
from fakes.rdt_demos import write_demos
from headway.checkpoint import export_folder, find_resumable
from headway.config import load_config
from headway.engine.loop import train
from headway.recipes.rdt.data import baseline, prepare
from headway.recipes.rdt.preset import RECIPE
from headway.telemetry import RunDir

pytestmark = pytest.mark.slow

SHORT = [
    "recipe=rdt",
    "task.hidden_size=16",
    "task.depth=2",
    "task.num_heads=2",
    "task.state_noise_snr=30",
    "task.image_aug=true",
    "task.sample.batches=1",
    "task.sample.batch=4",
    "task.rollout.episodes=2",
    "task.rollout.max_steps=4",
    "batch.per_device=4",
    "eval.every=0",
    "eval.samples=8",
    "save.every=3",
]


@pytest.fixture(autouse=True)
def one_thread():
    """Two threads on busy cores wait for each other most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    folder = write_demos(tmp_path_factory.mktemp("rdt-demos"), demos=3)
    _prepare(folder, SHORT)
    return folder


def _prepare(folder, words):
    words = [word for word in words if not word.startswith("recipe=")]
    section = load_config(recipe=RECIPE, overrides=[*words, f"task.data_dir={folder}"]).config.task
    prepare(section, lambda line: None)
    return section


def _run(place, demos, *words, attempt=1):
    place.mkdir(exist_ok=True)
    return make_run(place, *SHORT, f"task.data_dir={demos}", *words, attempt=attempt)


@pytest.mark.timeout(1200)
def test_the_default_run_learns_both_tasks(tmp_path):
    """One rank with the batch of two; demonstrations and scenes are none of those the settings were chosen on."""
    section = _prepare(tmp_path / "data", [])
    words = [
        "recipe=rdt",
        f"task.data_dir={tmp_path / 'data'}",
        "train.steps=900",
        "batch.per_device=64",
        "parallel.threads=1",
    ]
    run = make_run(tmp_path, *words, "eval.every=0", "save.every=0")
    start = _trial(run)
    assert start["success_rate"] == 0.0
    assert train(run) == "done"
    (end,) = reports(tmp_path, "trial")
    level = baseline(section)
    assert end["measures"]["overall_avg_sample_mse"] < 0.3 * level["mean_overall_avg_sample_mse"]
    assert end["measures"]["success_rate"] > 0.5 and end["measures"]["success_low"] > level["mean_success_rate"]
    assert end["measures"]["episodes"] == 20


def _trial(run):
    with torch.no_grad(), torch.random.fork_rng():
        sums = run.task.trial(run.model.eval(), part=0, parts=1)
    return run.task.summarize_trial({name: float(value) for name, value in sums.items()})


def test_a_resumed_run_is_bit_equal_to_an_undisturbed_one(tmp_path, demos):
    assert train(_run(tmp_path / "whole", demos, "train.steps=6")) == "done"
    first = _run(tmp_path / "cut", demos, "train.steps=6")
    first.is_stop_wanted = lambda: first.progress.step >= 2
    assert train(first) == "stopped" and first.progress.step == 3
    again = _run(tmp_path / "cut", demos, "train.steps=6", attempt=2)
    assert again.progress.step == 3 and again.ema.updates == 3, "the average goes on where it was"
    assert train(again) == "done"
    whole, cut = (read_tensors(RunDir(tmp_path / name)) for name in ("whole", "cut"))
    assert whole.keys() == cut.keys() and any(name.startswith("ema/") for name in whole)
    assert [name for name in whole if whole[name] != cut[name]] == []


def test_worker_processes_give_the_same_weights(tmp_path, demos):
    for name, workers in (("none", 0), ("two", 2)):
        run = _run(tmp_path / name, demos, "train.steps=3", f"parallel.workers={workers}", "eval.samples=4")
        assert train(run) == "done"
    none, two = (read_tensors(RunDir(tmp_path / name)) for name in ("none", "two"))
    assert [name for name in none if none[name] != two[name]] == []


def test_the_average_is_exported_where_the_guide_looks_for_it(tmp_path, demos):
    run = _run(tmp_path / "run", demos, "train.steps=4")
    assert train(run) == "done"
    path = find_resumable(RunDir(tmp_path / "run").checkpoints).path
    done = export_folder(path, tmp_path / "out")
    average = load_file(tmp_path / "out" / "checkpoint-4" / "ema" / "model.safetensors")
    weights = load_file(tmp_path / "out" / "checkpoint-4" / "model.safetensors")
    assert len(done.files) == 3 and average.keys() == weights.keys() == run.ema.state().keys()
    for name, value in run.ema.state().items():
        assert torch.equal(average[name], value)
    assert not all(torch.equal(average[name], weights[name]) for name in average)
    about = json.loads((tmp_path / "out" / "checkpoint-4" / "config.json").read_text())
    assert (about["step"], about["pred_horizon"], about["config"]["rdt"]["hidden_size"]) == (4, 16, 16)


def test_a_trial_without_memory_costs_the_trial_and_not_the_run(tmp_path, demos):
    words = ["train.steps=3", "eval.trial_every=1", "task.sample.memory_gib=1e-6"]
    run = _run(tmp_path / "run", demos, *words)
    assert train(run) == "done" and run.progress.step == 3
    warned = reports(tmp_path / "run", "warning")
    assert len(warned) == 3 and all(event["code"] == "engine/trial-failed" for event in warned)
    assert "sample-budget" in warned[0]["facts"]["why"] and not reports(tmp_path / "run", "trial")
