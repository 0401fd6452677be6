"""Traces on fake tensors against the true peak of the CPU allocator, and the child that makes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields, replace

import pytest
import torch
from click.testing import CliRunner
from torch.profiler import ProfilerActivity, profile

from fakes.machines import four_4090, machine
from headway.cli.plan import plan as plan_command
from headway.config import load_config
from headway.engine.ema import Ema
from headway.engine.optim import make_optimizers
from headway.engine.parallel import Ranks
from headway.engine.precision import Precision
from headway.engine.rank import build_model, load_task
from headway.planner import Plan, foresee, make_plan, study_model
from headway.planner.memory import WORKSPACE_BYTES, MemoryForecast
from headway.planner.recipe_trace import Trace, stretch, weigh_trace
from headway.recipes.rdt.advice import weigh
from headway.task import find_recipe
from headway.trace.recipe import trace_step


def job(*words: str) -> dict:
    loaded = load_config(None, recipe=find_recipe, overrides=["recipe=nanochat", *words], environ={})
    plan = make_plan(loaded, machine(), loaded.recipe)
    return {"recipe": "nanochat", "config": loaded.config.model_dump(mode="json"), "plan": plan.to_json()}


def real_peak(stored: dict, micro_batch: int) -> int:
    """Run the step for once and add the allocator's own events up."""
    config, task = load_task(stored)
    plan = replace(Plan.from_json(stored["plan"]), strategy="single", world_size=1)
    ranks = Ranks(0, 1, 0, torch.device("cpu"))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        model, layout = build_model(task, config, plan, ranks)
        optimizers = make_optimizers(task.param_groups(model), layout)
        ema = Ema(model, layout, config.ema) if config.ema.decay else None
        batch = {name: value.clone() for name, value in task.example(micro_batch).items()}
        model.train()
        with Precision(plan.precision, ranks.device).context():
            loss = task.loss(model, batch)
        loss.total.backward()
        del loss
        for optimizer in optimizers:
            optimizer.step(1e-3, 1)
        if ema is not None:
            ema.update()
    events = [one for one in watched.profiler.kineto_results.events() if one.name() == "[memory]"]
    live = most = 0
    for event in sorted(events, key=lambda one: one.start_ns()):
        live += event.nbytes()
        most = max(most, live)
    return most


@pytest.mark.parametrize(
    ("words", "micro_batch"),
    [
        ((), 4),
        (("task.depth=3", "task.vocab_size=4096", "train.precision=bf16"), 8),
        (("task.depth=6", "task.max_seq_len=256", "train.activation_checkpoint=true", "ema.decay=0.99"), 6),
    ],
)
def test_a_trace_foresees_the_allocators_peak(words, micro_batch):
    stored = job(*words)
    assert trace_step(stored, micro_batch)["peak_bytes"] == pytest.approx(real_peak(stored, micro_batch), rel=0.03)


def test_the_child_answers_a_question_and_needs_no_memory_for_a_large_model():
    stored = job("task.depth=8", "task.aspect=128", "task.max_seq_len=2048", "task.vocab_size=65536")
    question = json.dumps({"job": stored, "micro_batches": [1, 2], "asker": os.getpid()})
    done = subprocess.run(
        [sys.executable, "-m", "headway.trace.recipe"], input=question, capture_output=True, text=True, check=True
    )
    low, high = json.loads(done.stdout)["traces"]
    assert low["params"] > 2e8
    assert high["flops"] == 2 * low["flops"]
    assert high["parts"]["weights"] == low["parts"]["weights"]
    assert high["peak_bytes"] > low["peak_bytes"] > 12 * low["params"]


def test_the_child_says_why_it_cannot(tmp_path):
    stored = job()
    stored["recipe"] = "no-such-recipe"
    question = json.dumps({"job": stored, "micro_batches": [1, 2], "asker": os.getpid()})
    done = subprocess.run(
        [sys.executable, "-m", "headway.trace.recipe"], input=question, capture_output=True, text=True, check=False
    )
    assert json.loads(done.stdout)["trouble"] == "recipes/unknown"


@pytest.mark.parametrize("recipe", ["nanochat", "rdt"])
def test_a_step_that_recomputes_its_blocks_is_traced_as_a_gpu_runs_it(recipe):
    traced = {}
    for again in ("false", "true"):
        words = [f"recipe={recipe}", f"train.activation_checkpoint={again}", "train.precision=bf16"]
        loaded = load_config(None, recipe=find_recipe, overrides=words, environ={})
        plan = make_plan(loaded, machine(four_4090()[:1]), loaded.recipe)
        job = {"recipe": recipe, "config": loaded.config.model_dump(mode="json"), "plan": plan.to_json()}
        traced[again] = trace_step(job, 16)
    assert traced["true"]["flops"] > 1.1 * traced["false"]["flops"]
    assert traced["true"]["peaks"]["pass"]["activations"] <= traced["false"]["peaks"]["pass"]["activations"]


def plan_rdt(*words: str):
    overrides = ["recipe=rdt", "preset=rdt-170m", "task.depth=4", "task.num_heads=8", *words]
    loaded = load_config(None, recipe=find_recipe, overrides=overrides, environ={})
    here = machine(four_4090()[:2])
    return loaded, here, make_plan(loaded, here, loaded.recipe)


def test_rdt_is_traced_without_its_data_and_its_own_estimate_agrees(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    loaded, here, plan = plan_rdt(f"task.data_dir={tmp_path}/none")
    here = replace(here, framework=replace(here.framework, python=sys.executable))
    model = study_model(plan, loaded.config, here, loaded.recipe, trace=True)
    assert model is not None and model.source == "trace"
    for strategy, batch in (("ddp", 1), ("ddp", 8), ("ddp", 32), ("fsdp", 8), ("fsdp", 32)):
        found = foresee(replace(plan, strategy=strategy, micro_batch=batch), loaded.config, here, model)
        held = weigh(loaded.config.task, per_device=batch, has_ema=True, ranks=2, is_sharded=strategy == "fsdp")
        said = MemoryForecast(parts=held, moment="backward", ranks=2)
        assert said.used_bytes == pytest.approx(found.used_bytes, rel=0.06), (strategy, batch)


def test_a_peak_that_moves_with_the_batch_is_not_stretched_into_another(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    loaded, _, plan = plan_rdt(f"task.data_dir={tmp_path}/none")
    stored = {"recipe": "rdt", "config": loaded.config.model_dump(mode="json"), "plan": plan.to_json()}
    traces = {size: trace_step(stored, size) for size in (1, 4, 8)}
    # With one sample validation is the highest point, for the weights are set aside; with eight it is backward.
    assert (traces[1]["moment"], traces[8]["moment"]) == ("evaluation", "activations")
    known = {field.name for field in fields(Trace)}
    small, large = (Trace(**{name: traces[size][name] for name in known}) for size in (1, 8))
    middle = weigh_trace(stretch(small, large, 4), replace(plan, world_size=1, strategy="single"))
    assert middle.allocated_bytes - WORKSPACE_BYTES == pytest.approx(traces[4]["peak_bytes"], rel=0.01)


@pytest.mark.parametrize(
    "words", [("train.precision=bf16",), ("train.activation_checkpoint=true", "optimizer.name=adamw")]
)
def test_formula_and_trace_of_a_gpu_plan_agree_and_a_kept_trace_changes_no_answer(tmp_path, monkeypatch, words):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def ask(how: str) -> dict:
        sizes = ("task.depth=6", "task.max_seq_len=1024", "task.vocab_size=8192", "batch.per_device=16")
        shown = CliRunner().invoke(plan_command, ["nanochat", *sizes, *words, "--on", "2xH100", how, "--json"])
        assert shown.exit_code == 0, shown.output
        return json.loads(shown.stdout)["forecast"]

    formula, trace = ask("--no-trace"), ask("--trace")
    assert (formula["source"], trace["source"]) == ("formula", "trace")
    assert formula["allocated_bytes"] == pytest.approx(trace["allocated_bytes"], rel=0.05)
    assert formula["step_s"] == trace["step_s"]
    assert ask("--no-trace") == formula  # the trace is kept by now
    assert formula["least_bytes"] < formula["used_bytes"]


def test_a_plan_in_an_empty_home_prepares_data_and_names_what_gpus_refuse(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    words = ["tfnet", "task.framework=torch", "train.deterministic=true", "--on", "1x4090", "--json"]
    told = json.loads(CliRunner().invoke(plan_command, words).stdout)
    assert told["forecast"]["source"] == "trace"
    # Its data was there for the trace, and on a GPU it has a CTC of its own.
    assert not {"plan/trace-failed", "plan/not-deterministic"} & {one["code"] for one in told["warnings"]}
    words = ["layoutmaster", "task.freeze_visual=false", *words[2:]]
    told = json.loads(CliRunner().invoke(plan_command, words).stdout)
    (warning,) = (one for one in told["warnings"] if one["code"] == "plan/not-deterministic")
    assert warning["facts"]["ops"] == "_adaptive_avg_pool2d_backward"
