"""Presets that fill a share of the memory at hand."""

from __future__ import annotations

import pytest

from fakes.machines import four_4090, gpu, machine
from headway.config import ConfigErrors, load_config
from headway.planner import fit_preset, foresee, make_plan, study_model
from headway.task import find_recipe


def fitted(name: str, gpus, *words: str):
    overrides = ["recipe=nanochat", f"preset={name}", *words]
    loaded = load_config(None, recipe=find_recipe, overrides=overrides, environ={})
    there = machine(gpus=gpus)
    loaded = fit_preset(loaded, there)
    return loaded, there, make_plan(loaded, there, loaded.recipe)


@pytest.fixture(autouse=True)
def no_trace(monkeypatch):
    # The recipe tells its shape; a trace would take seconds and give the same kind of answer.
    monkeypatch.setattr("headway.planner.outlook.make_trace", lambda *_, **__: None)


@pytest.mark.parametrize(("name", "share"), [("conservative", 0.5), ("balanced", 0.7), ("aggressive", 0.9)])
def test_the_micro_batch_stays_below_its_share_and_the_total_stays(name, share):
    loaded, there, plan = fitted(name, four_4090()[:2])
    model = study_model(plan, loaded.config, there, loaded.recipe, trace=False)
    assert model is not None
    found = foresee(plan, loaded.config, there, model)
    assert found.used_bytes <= share * found.device_bytes
    published = find_recipe("nanochat").presets[name]
    assert plan.batch_samples * (plan.tokens_per_sample or 0) == published["batch.total"]


def test_more_memory_means_a_larger_micro_batch():
    small, large = (fitted("balanced", cards)[2] for cards in (four_4090()[:2], (gpu(0), gpu(1))))
    assert small.micro_batch < large.micro_batch
    assert small.batch_samples == large.batch_samples


def test_a_micro_batch_somebody_wrote_stays():
    loaded, _, plan = fitted("balanced", four_4090()[:2], "batch.per_device=3")
    assert plan.micro_batch == 3 and loaded.origins["batch.per_device"].startswith("command line")


def test_without_a_total_a_gpu_is_filled():
    sizes = ["batch.total=null", "task.depth=4", "task.max_seq_len=512"]
    plans = [fitted(name, (gpu(0),), *sizes)[2] for name in ("conservative", "aggressive")]
    assert plans[0].micro_batch < plans[1].micro_batch


def test_every_recipe_has_the_three_presets():
    for name in ("layoutmaster", "tfnet"):
        loaded = load_config(None, recipe=find_recipe, overrides=[f"recipe={name}", "preset=balanced"], environ={})
        assert loaded.config.preset == "balanced"
    with pytest.raises(ConfigErrors):
        load_config(None, recipe=find_recipe, overrides=["recipe=tfnet", "preset=huge"], environ={})
