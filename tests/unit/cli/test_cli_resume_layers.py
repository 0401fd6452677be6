"""A resumed run is decided as it was at its start: config.yaml and origins.json give the layers back."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.machines import machine
from headway.config import dump_yaml, load_config
from headway.planner import Standing, make_plan
from headway.start.source import reload
from headway.task import find_recipe
from headway.telemetry import RunDir, write_json

RECIPES = ("atlas", "layoutmaster", "nanochat", "rdt", "tfnet", "tests/fakes/tiny")
STARTS = (
    ("train.steps=10", "lr.warmup_samples=160"),
    ("train.samples=1600", "batch.all_devices=8"),
    ("train.samples=1600", "batch.total={samples}", "batch.accumulation=2", "lr.warmup_steps=3"),
)
DECIDED = ("world_size", "micro_batch", "accumulation", "batch_samples", "total_samples", "total_steps", "lr_factor")
DECIDED = (*DECIDED, "warmup_samples", "precision", "strategy", "workers", "warnings")


@pytest.fixture(autouse=True)
def trusted(monkeypatch):
    monkeypatch.setenv("HEADWAY_TRUST", str(Path("tests/fakes/tiny").resolve()))


def store(place, loaded):
    """Write what a run directory says about its config."""
    run = RunDir(place)
    run.config.write_text(dump_yaml(loaded.config), encoding="utf-8")
    write_json(run.origins, loaded.origins)
    write_json(run.job, {"recipe": loaded.config.recipe})
    return run


def plan_of(loaded, **more):
    return make_plan(loaded, machine(cores=4), loaded.recipe, **more)


@pytest.mark.parametrize("words", STARTS, ids=["steps", "all-devices", "total"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_is_decided_as_at_its_start(tmp_path, recipe, words):
    unit = load_config(None, recipe=find_recipe, overrides=[f"recipe={recipe}"])
    tokens = unit.recipe.tokens_per_sample(unit.config.task) if unit.config.batch.unit == "tokens" else 1
    words = [word.format(samples=8 * tokens) for word in words]
    fixed = [f"recipe={recipe}", "parallel.gpus=0", "parallel.cpus=2"]
    loaded = load_config(None, recipe=find_recipe, overrides=[*fixed, *words])
    first = plan_of(loaded)
    run = store(tmp_path, loaded)
    for turn in range(2):
        again = reload(run, [])
        assert again.config == loaded.config
        second = plan_of(again, before=first, done=Standing(step=2, samples=2 * first.batch_samples))
        assert {key: getattr(second, key) for key in DECIDED} == {key: getattr(first, key) for key in DECIDED}, turn
        # Nor do the layers alone, without the plan of before, say anything else.
        assert plan_of(again).batch_samples == first.batch_samples
        store(tmp_path, again)


def test_of_two_lengths_the_one_typed_last_decides_and_stays(tmp_path):
    tiny = ["recipe=tests/fakes/tiny", "parallel.cpus=1"]
    run = store(tmp_path, load_config(None, recipe=find_recipe, overrides=[*tiny, "train.epochs=2"]))
    assert plan_of(reload(run, [])).total_samples == 194
    store(tmp_path, reload(run, ["train.steps=7"]))
    for _ in range(2):
        loaded = reload(run, [])
        assert (plan_of(loaded).length, plan_of(loaded).total_steps) == ("steps", 7)
        store(tmp_path, loaded)
    last = reload(run, ["epochs=3"])
    assert plan_of(last).total_samples == 291
    assert last.origins["train.epochs"] == "command line"
    assert last.origins["train.steps"] == "command line 2"
    assert last.origins["parallel.cpus"] == "command line 1"
    assert last.origins["lr.base"] == "recipe tiny"


def test_a_run_without_origins_counts_as_one_file(tmp_path):
    tiny = ["recipe=tests/fakes/tiny", "parallel.cpus=1", "train.steps=9"]
    run = store(tmp_path, load_config(None, recipe=find_recipe, overrides=tiny))
    for damage in ("", "[1, 2]"):
        run.origins.write_text(damage)
        assert plan_of(reload(run, [])).total_steps == 9


def test_a_mistake_in_an_edited_config_is_told_with_its_line(tmp_path):
    run = store(tmp_path, load_config(None, recipe=find_recipe, overrides=["recipe=tests/fakes/tiny", "train.steps=9"]))
    run.config.write_text(run.config.read_text().replace("steps: 9", "steps: nine"))
    with pytest.raises(Exception, match=r"config\.yaml:\d+:\d+") as refused:
        reload(run, [])
    assert refused.value.exit_code == 2
