"""The first losses of every recipe at toy size, as they were when this was written: an unwanted change is seen at once.

Processors round differently, so there is a tolerance: it is far wider than their differences and far narrower than
what another initialisation, order of samples or update would change. Who changes one of these on purpose writes the
new numbers here and says why in the commit.
"""

from __future__ import annotations

from importlib import import_module

import pytest
import torch

from fakes.atlas_set import TOY, write_toy
from fakes.engine_run import make_run
from fakes.rdt_demos import write_demos
from fakes.tfnet_set import SMALL, write_small
from headway.config import load_config
from headway.engine.loop import train
from headway.recipes.layoutmaster.section import LayoutMasterSection
from headway.recipes.layoutmaster.synthetic import write_posters
from headway.task import find_recipe
from headway.telemetry import RunDir, read_metrics

STEPS = ("train.steps=4", "train.precision=fp32", "eval.every=0", "save.every=0", "parallel.threads=1", "seed=5")
ATLAS = [f"task.{key}={list(value) if isinstance(value, tuple) else value}".lower() for key, value in TOY.items()]


def nanochat(folder):
    return ["task.depth=2", "task.aspect=16", "task.vocab_size=512", "task.max_seq_len=32", "batch.per_device=4"]


def atlas(folder):
    write_toy(folder)
    return [*ATLAS, f"task.cache_dir={folder / 'cache'}", "batch.per_device=4", "lr.warmup_samples=0"]


def layoutmaster(folder):
    write_posters(folder / "data", LayoutMasterSection(max_elements=10, trajectory_steps=4), num=12)
    words = ["task.hidden_dim=16", "task.num_heads=2", "task.num_layers=1", "task.visual_dim=8", "task.image_size=32"]
    return [*words, "task.max_elements=10", "task.trajectory_steps=4", "task.eval_steps=3", "batch.per_device=4"]


def rdt(folder):
    write_demos(folder / "data", demos=3)
    words = ["task.hidden_size=16", "task.depth=2", "task.num_heads=2", "task.sample.batches=1", "task.sample.batch=4"]
    return [*words, "task.rollout.episodes=1", "task.rollout.max_steps=2", "batch.per_device=4"]


def tfnet(folder):
    write_small(folder / "data")
    return [*SMALL, "task.framework=torch", "task.synthetic=true", "task.distill=repaired"]


GOLDEN = {
    nanochat: (6.2383242, 6.0393486, 5.9506626, 5.5138507),
    atlas: (0.7089192, 0.6250477, 0.6311634, 0.6584201),
    layoutmaster: (0.9480236, 0.734022, 0.5071346, 0.5865158),
    rdt: (0.4475711, 0.4493336, 0.3268651, 0.3684724),
    tfnet: (92.8544006, 87.0177231, 74.8477936, 81.5127106),
}


@pytest.mark.parametrize("words_of", GOLDEN, ids=lambda one: one.__name__)
def test_the_first_losses_are_those_of_before(tmp_path, words_of):
    name = words_of.__name__
    words = [f"recipe={name}", f"task.data_dir={tmp_path / 'data'}", *words_of(tmp_path), *STEPS]
    section = load_config(None, recipe=find_recipe, overrides=words).config.task
    import_module(f"headway.recipes.{name}.data").prepare(section, lambda line: None)
    (tmp_path / "run").mkdir()
    with torch.random.fork_rng():
        assert train(make_run(tmp_path / "run", *words)) == "done"
    losses = read_metrics(RunDir(tmp_path / "run").metrics(0))["loss"]
    assert list(losses) == pytest.approx(GOLDEN[words_of], rel=1e-3)
