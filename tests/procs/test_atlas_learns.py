"""Atlas through the real engine, one rank in this process: it learns to do as it is told, and resumes bit for bit."""

import pytest
import torch

from fakes.atlas_set import TOY, write_toy
from fakes.engine_run import make_run, read_tensors, reports
from headway.checkpoint import find_resumable
from headway.config import load_config
from headway.engine.loop import train
from headway.errors import TrainError
from headway.recipes.atlas.data import baseline, prepare
from headway.recipes.atlas.preset import RECIPE
from headway.telemetry import RunDir

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SHORT = [
    "recipe=atlas",
    *(f"task.{key}={list(value) if isinstance(value, tuple) else value}".lower() for key, value in TOY.items()),
    "task.dropout=0.1",
    "task.whiten=true",
    "batch.per_device=4",
    "lr.warmup_samples=0",
    "eval.every=0",
    "save.every=3",
]


@pytest.fixture(autouse=True)
def one_thread():
    """What the engine sets is set back."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas")
    write_toy(folder)
    _prepare(folder, SHORT)
    return folder


def _places(folder):
    # Two threads on busy cores wait for each other most of the time.
    return [f"task.data_dir={folder / 'data'}", f"task.cache_dir={folder / 'cache'}", "parallel.threads=1"]


def _prepare(folder, words):
    words = [word for word in words if not word.startswith("recipe=")]
    section = load_config(recipe=RECIPE, overrides=[*words, *_places(folder)]).config.task
    prepare(section, lambda line: None)
    return section


def _run(place, toy, *words, attempt=1):
    place.mkdir(exist_ok=True)
    return make_run(place, *SHORT, *_places(toy), *words, attempt=attempt)


def _trial(run):
    with torch.no_grad(), torch.random.fork_rng():
        sums = run.task.trial(run.model.eval(), part=0, parts=1)
    return run.task.summarize_trial({name: float(value) for name, value in sums.items()})


def test_the_default_run_learns_to_do_as_it_is_told(tmp_path):
    """The default model and its whole batch on one rank; held-out episodes and scenes it has never seen."""
    section = _prepare(tmp_path, [])
    words = [
        "recipe=atlas",
        *_places(tmp_path),
        "batch.per_device=64",
        "train.steps=600",
        "eval.every=0",
        "save.every=0",
    ]
    run = make_run(tmp_path, *words)
    assert _trial(run)["success_rate"] == 0.0
    assert train(run) == "done"
    level = baseline(section)
    (validation,), (trial,) = reports(tmp_path, "validation"), reports(tmp_path, "trial")
    found = validation["measures"]
    assert found["pose_l1"] < 0.5 * level["mean_pose_l1"]
    assert found["gripper_accuracy"] > 0.85 > level["majority_gripper_accuracy"]
    # Told the other colour it goes the other way: worse than knowing nothing.
    assert found["wrong_instruction_l1"] > level["mean_pose_l1"] > 2 * found["pose_l1"]
    assert trial["measures"]["success_rate"] >= 0.4 and trial["measures"]["wrong_block_rate"] <= 0.2


def test_a_resumed_run_is_bit_equal_to_an_undisturbed_one(tmp_path, toy):
    assert train(_run(tmp_path / "whole", toy, "train.steps=6")) == "done"
    first = _run(tmp_path / "cut", toy, "train.steps=6")
    first.is_stop_wanted = lambda: first.progress.step >= 2
    assert train(first) == "stopped" and first.progress.step == 3
    again = _run(tmp_path / "cut", toy, "train.steps=6", attempt=2)
    assert again.progress.step == 3
    assert train(again) == "done"
    whole, cut = (read_tensors(RunDir(tmp_path / name)) for name in ("whole", "cut"))
    assert whole.keys() == cut.keys() and "model/geometry.pointnet.norms.0.running_mean" in whole
    assert [name for name in whole if whole[name] != cut[name]] == []


def test_a_checkpoint_holds_what_trains_and_only_a_hash_of_the_rest(tmp_path, toy):
    run = _run(tmp_path / "run", toy, "train.steps=3")
    assert train(run) == "done"
    manifest = find_resumable(RunDir(tmp_path / "run").checkpoints).manifest
    kept = {name.removeprefix("model/") for name in manifest.tensors if name.startswith("model/")}
    assert not [name for name in kept if name.startswith(("vision.", "language."))]
    assert kept >= {name for name, param in run.model.named_parameters() if param.requires_grad}
    assert manifest.meta["frozen_id"] == run.frozen_id and len(run.frozen_id) == 16


def test_other_frozen_weights_are_not_taken_for_the_same(tmp_path, toy):
    assert train(_run(tmp_path / "run", toy, "train.steps=3")) == "done"
    with pytest.raises(TrainError) as refused:
        _run(tmp_path / "run", toy, "train.steps=6", "task.lang_max_length=7", attempt=2)
    assert refused.value.code == "engine/frozen-changed"


def test_frozen_encoders_do_not_move_and_trained_ones_do(tmp_path, toy):
    names = {"vision": "aggregator.frame_blocks.0.mlp.fc1.weight", "language": "words.weight"}
    for freeze in (True, False):
        flags = [f"task.freeze_vggt={freeze}".lower(), f"task.freeze_lang_encoder={freeze}".lower()]
        run = _run(tmp_path / str(freeze), toy, "train.steps=2", "task.whiten=false", *flags)
        before = {part: run.model.get_submodule(part).get_parameter(name).clone() for part, name in names.items()}
        assert train(run) == "done"
        for part, name in names.items():
            now = run.model.get_submodule(part).get_parameter(name)
            assert torch.equal(before[part], now) is freeze, (part, freeze)


def test_worker_processes_give_the_same_weights(tmp_path, toy):
    for name, workers in (("none", 0), ("two", 2)):
        words = ["train.steps=3", f"parallel.workers={workers}", "task.cache_features=false"]
        run = _run(tmp_path / name, toy, *words)
        assert train(run) == "done"
    none, two = (read_tensors(RunDir(tmp_path / name)) for name in ("none", "two"))
    assert [name for name in none if none[name] != two[name]] == []
