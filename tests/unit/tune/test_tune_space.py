"""What may be tried where."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.machines import machine
from headway.config import load_config
from headway.planner import make_plan
from headway.task import find_recipe
from headway.tune import Question, list_changes, make_space
from headway.tune.record import apply_settings


def space(*words: str, cpuinfo: str = "flags : sse2", cores: int = 8):
    loaded = load_config(None, recipe=find_recipe, overrides=["recipe=nanochat", *words], environ={})
    there = machine(cores=cores)
    return make_space(make_plan(loaded, there, loaded.recipe), loaded.config, there, loaded.origins, cpuinfo=cpuinfo)


def test_micro_batches_keep_the_effective_batch(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("batch: {unit: samples, total: 96, per_device: 8}\nparallel: {cpus: 2}\n")
    loaded = load_config(path, recipe=find_recipe)
    plan = make_plan(loaded, machine(), loaded.recipe)
    sizes = make_space(plan, loaded.config, machine(), loaded.origins, cpuinfo="").values["micro_batch"]
    assert 8 in sizes and sizes[-1] == 48
    assert all(48 % size == 0 for size in sizes)


def test_what_was_typed_stays():
    found = space("train.compile=false", "batch.per_device=4", "batch.unit=samples", "batch.total=64")
    assert found.values["compile"] == (False,) and found.values["micro_batch"] == (4,)
    assert "tune/skip-typed" in {skip.code for skip in found.skips}


def test_bf16_on_a_cpu_needs_units_for_it():
    assert space().values["precision"] == ("fp32",)
    assert space(cpuinfo="flags : avx512_bf16 amx_bf16").values["precision"] == ("fp32", "bf16")


def test_threads_and_workers_stay_within_the_cores_of_a_rank():
    found = space("parallel.cpus=2")
    assert max(found.values["threads"]) == 4
    assert found.values["workers"] == (0, 1, 2, 4)


def mindspore(*words: str):
    fixed = ["recipe=tfnet", "batch.total=8", *words]
    loaded = load_config(None, recipe=find_recipe, overrides=fixed, environ={})
    there = machine(cores=2)
    plan = make_plan(loaded, there, loaded.recipe)
    return Question(loaded=loaded, machine=there, plan=plan, place=Path(), budget_s=60.0)


def test_mindspore_is_searched_over_what_its_engine_reads():
    found = mindspore().space()
    assert found.values["task.graph_mode"] == (True, False) and found.values["task.prefetch"] == (0, 2, 4)
    assert all(len(found.values[axis]) == 1 for axis in ("precision", "compile", "activation_checkpoint", "workers"))
    assert len(found.values["threads"]) > 1 and "task.amp_level" not in found.values
    typed = mindspore("task.graph_mode=true").space()
    assert typed.values["task.graph_mode"] == (True,) and "tune/skip-typed" in {one.code for one in typed.skips}
    assert not {"task.graph_mode", "task.prefetch"} & set(mindspore("task.framework=torch").space().values)


def test_a_recipes_own_key_is_moved_typed_and_applied_like_any_other():
    asked = mindspore()
    start = asked.start()
    moved = start.moved("task.graph_mode", False)
    assert moved.words(start) == "task.graph_mode=false" and moved.value("task.prefetch") == 2
    _, config = apply_settings(moved, asked.plan, asked.loaded.config)
    assert config.task.graph_mode is False and asked.loaded.config.task.graph_mode is True
    assert list_changes(moved, start, asked.plan, config) == {"task.graph_mode": False}


def test_half_precision_is_tried_where_the_device_has_it():
    recipe = find_recipe("tfnet")
    section = recipe.section()
    assert recipe.tunable is not None and recipe.tunable(section, "cuda")["task.amp_level"] == ("O0", "O2")
    sunk = section.model_copy(update={"data_sink": True})
    assert set(recipe.tunable(sunk, "cpu")) == set()


@pytest.mark.parametrize("name", ["environment.yaml", "command line.yaml", "environment X.yaml"])
def test_values_of_a_file_may_move_whatever_the_file_is_called(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("recipe: nanochat\nbatch: {per_device: 8, accumulation: 2}\nparallel: {workers: 1}\n")
    loaded = load_config(Path(name), recipe=find_recipe)
    plan = make_plan(loaded, machine(), loaded.recipe)
    space = make_space(plan, loaded.config, machine(), loaded.origins, cpuinfo="")
    assert len(space.values["micro_batch"]) > 1 and len(space.values["workers"]) > 1
    assert "tune/skip-typed" not in {skip.code for skip in space.skips}
