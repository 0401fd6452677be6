"""Forecasts of whole plans: rows, refusals with what fits, what-if, and traces laid over ranks."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace

import pytest

from fakes.machines import eight_h100 as eight_gpus
from fakes.machines import machine
from headway.config import BatchConfig, EmaConfig, OptimizerConfig, Recipe, RunConfig, Section, TrainConfig
from headway.errors import PlanError
from headway.machine.cards import make_gpus, parse_wanted
from headway.messages.plan import TEXTS
from headway.planner import (
    find_card,
    foresee,
    imagine,
    know_model,
    list_holders,
    look_ahead,
    make_plan,
    recipe_trace,
    speed_up,
)
from headway.planner.forecast import CARDS, imagine_cards, kept_checkpoints, largest_micro_batch, trace_sizes
from headway.planner.recipe_trace import Trace, stretch, weigh_trace

GIB = 1 << 30


@dataclass(frozen=True)
class Loaded:
    config: RunConfig
    origins: dict[str, str]
    guide_names: dict[str, str]


@pytest.fixture(autouse=True)
def no_kept_traces(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))


def recipe(layers: int = 20) -> Recipe:
    hidden = 64 * layers
    shape = {
        "layers": layers,
        "hidden": hidden,
        "heads": layers // 2,
        "vocab": 65536,
        "ffn": 4 * hidden,
        "mlp": "relu2",
    }
    return Recipe(
        name="tiny",
        section=Section,
        task="tiny.task",
        tokens_per_sample=lambda _: 2048,
        shape=lambda _: {**shape, "norm": "layer", "qk_norm": True, "logit_tokens": 4096},
    )


def eight_h100():
    return machine(eight_gpus())


def two_4090():
    count, model = parse_wanted("2x4090")
    return machine(make_gpus(count, model))


def planned(here, *, per_device=8, total=None, **sections):
    sections.setdefault("train", TrainConfig(steps=1000))
    config = RunConfig(batch=BatchConfig(per_device=per_device, total=total), **sections)
    loaded = Loaded(config, {}, {})
    return make_plan(loaded, here, recipe()), loaded


def test_a_plan_that_fits_gets_rows_of_memory_time_and_disk():
    made, loaded = planned(eight_h100())
    made, model = look_ahead(made, loaded, eight_h100(), recipe())
    rows = {row.key: row for row in made.rows}
    assert rows["gpu-memory"].value_code == "plan/value-memory-fits"
    assert {"step-time", "rate", "eta", "energy", "disk"} <= rows.keys()
    assert made.forecast["source"] == "formula"
    assert model.source == "formula"


def test_a_plan_that_does_not_fit_is_refused_with_those_that_do():
    made, loaded = planned(two_4090(), per_device=16)
    with pytest.raises(PlanError) as refused:
        look_ahead(made, loaded, two_4090(), recipe())
    assert refused.value.code == "plan/does-not-fit"
    assert refused.value.exit_code == 4
    assert "batch.per_device=" in refused.value.hint()
    assert "train.activation_checkpoint=true" in refused.value.hint()


def test_where_no_single_change_helps_shards_and_a_smaller_micro_batch_are_offered_together():
    made, loaded = planned(two_4090(), per_device=16)
    with pytest.raises(PlanError) as refused:
        look_ahead(made, loaded, two_4090(), recipe(layers=26))
    assert "parallel.strategy=fsdp batch.per_device=2" in refused.value.hint()


def test_a_model_too_large_for_any_setting_says_so():
    made, loaded = planned(two_4090(), per_device=1)
    with pytest.raises(PlanError) as refused:
        look_ahead(made, loaded, two_4090(), recipe(layers=60))
    assert refused.value.code == "plan/never-fits"


def test_what_is_offered_keeps_the_effective_batch():
    made, loaded = planned(two_4090(), per_device=16)
    model = know_model(recipe(), loaded.config, None)
    for one in imagine(made, loaded.config, two_4090(), model):
        assert one.plan.micro_batch * one.plan.accumulation * one.plan.world_size == made.batch_samples
    best = largest_micro_batch(made, loaded.config, two_4090(), model)
    assert best.micro_batch < 16
    assert foresee(best, loaded.config, two_4090(), model).verdict == "fits"


def test_a_recipe_without_a_shape_or_a_trace_is_planned_without_a_forecast():
    made, loaded = planned(eight_h100())
    after, model = look_ahead(made, loaded, eight_h100(), replace(recipe(), shape=None))
    assert model is None
    assert (*made.rows, after.rows[-1]) == after.rows
    assert replace(after, rows=made.rows) == made


def test_a_cpu_run_over_its_memory_is_warned_and_not_refused():
    here = replace(machine(), memory_free_bytes=GIB)
    made, loaded = planned(here, per_device=32)
    made, _ = look_ahead(made, loaded, here, recipe())
    assert "plan/over-memory" in {warning.code for warning in made.warnings}


def test_more_ranks_give_more_samples_but_never_more_than_their_number():
    made, loaded = planned(eight_h100())
    model = know_model(recipe(), loaded.config, None)
    rates = speed_up(made, loaded.config, model, find_card(eight_h100().gpus[0]))
    assert list(rates) == [1, 2, 4, 8, 16]
    assert all(rates[ranks] < ranks * rates[1] for ranks in (2, 4, 8, 16))
    assert list(rates.values()) == sorted(rates.values())


def test_every_card_of_the_comparison_has_a_data_sheet():
    made, loaded = planned(eight_h100())
    model = know_model(recipe(), loaded.config, None)
    assert len(list(imagine_cards(made, loaded.config, model))) == len(CARDS)


def test_muon_and_a_moving_average_change_what_is_held():
    here = eight_h100()
    adam, loaded = planned(here)
    model = know_model(recipe(), loaded.config, None)
    first = foresee(adam, loaded.config, here, model).memory.parts
    other = loaded.config.model_copy(update={"optimizer": OptimizerConfig(name="muon"), "ema": EmaConfig(decay=0.99)})
    second = foresee(adam, other, here, model).memory.parts
    assert second["optimizer-state"] < first["optimizer-state"]
    assert second["moving-average"] > 0


def test_sgd_holds_one_moment_or_none():
    here = eight_h100()
    made, loaded = planned(here)
    model = know_model(recipe(), loaded.config, None)

    def states(**optimizer):
        config = loaded.config.model_copy(update={"optimizer": OptimizerConfig(**optimizer)})
        return foresee(made, config, here, model).memory.parts.get("optimizer-state", 0.0)

    assert states(name="sgd") == pytest.approx(states(name="adamw") / 2)
    assert states(name="sgd", momentum=0.0) == 0.0


def test_holders_have_words_and_end_with_what_is_outside():
    made, loaded = planned(eight_h100())
    made, _ = look_ahead(made, loaded, eight_h100(), recipe())
    holders = list_holders(made.forecast)
    assert all(f"plan/holder-{name}" in TEXTS for name, _ in holders)
    assert sum(held for _, held in holders) == made.forecast["used_bytes"]


def test_checkpoints_on_disk_are_those_that_stay_and_the_one_being_written():
    made, loaded = planned(eight_h100())
    assert kept_checkpoints(made, loaded.config) == 2  # one at the end


def trace(micro_batch: int, kept: int) -> Trace:
    parts = {"weights": 400, "gradients": 400, "optimizer-state": 800, "activations": kept, "backward": 10}
    return Trace(
        micro_batch=micro_batch,
        peak_bytes=sum(parts.values()),
        parts=parts,
        moment="backward",
        params=100,
        trained=100,
        weight_bytes=400,
        trained_bytes=400,
        state_bytes=800,
        dealt_bytes=400,
        largest_block_bytes=40,
        rest_bytes=100,
        flops=1000 * micro_batch,
        moved_bytes=100 * micro_batch,
        update_bytes=50,
        took_s=1.0,
    )


def test_two_traces_tell_any_other_micro_batch():
    found = stretch(trace(4, 1000), trace(8, 2000), 16)
    assert (found.micro_batch, found.parts["activations"], found.flops) == (16, 4000, 16000)
    assert found.parts["weights"] == 400


def test_a_trace_of_one_rank_is_laid_over_many():
    made, _ = planned(eight_h100())
    replicated = weigh_trace(trace(8, 2000), made)
    sharded = weigh_trace(trace(8, 2000), replace(made, strategy="fsdp"))
    assert replicated.parts["weights"] == 400
    assert replicated.parts["optimizer-state"] == 400 + 400 / 8  # Muon's half is dealt out
    assert sharded.parts["weights"] == 50
    assert sharded.parts["gathered-weights"] == (2 * 40 + 100) / 2


def test_the_traced_sizes_bracket_the_plan():
    made, _ = planned(eight_h100())
    assert trace_sizes(made) == (4, 8)
    assert trace_sizes(replace(made, micro_batch=1)) == (1, 2)


def test_a_kept_trace_holds_for_the_code_it_was_made_of_only(tmp_path, monkeypatch):
    # Issue 21, item 5: a recipe may import code from beside its folder, which is not a part of the key.
    monkeypatch.setenv("HOME", str(tmp_path))
    code = tmp_path / "beside.py"
    code.write_text("width = 16\n")
    made, _ = planned(eight_h100())
    place = recipe_trace._place("nanochat", {}, made, (4, 8))
    place.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(code.read_bytes()).hexdigest()
    kept = {"traces": [asdict(trace(4, 1000)), asdict(trace(8, 2000))], "sources": {str(code): digest}}
    place.write_text(json.dumps(kept))

    def found():
        return recipe_trace.find_trace("nanochat", {}, made, micro_batches=(4, 8))

    assert [one.micro_batch for one in found()] == [4, 8]
    code.write_text("width = 8192\n")
    assert found() is None
    code.unlink()
    assert found() is None
