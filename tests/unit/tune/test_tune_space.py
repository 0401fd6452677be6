"""What may be tried where."""

from __future__ import annotations

from fakes.machines import machine
from headway.config import load_config
from headway.plan import make_plan
from headway.recipes import find_recipe
from headway.tune import make_space


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
