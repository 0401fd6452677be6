"""Formula and trace of one plan agree, and a config that was shown plans the same again: for settings nobody chose."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fakes.machines import four_4090, machine
from headway.cli.config import config as config_command
from headway.cli.plan import plan as plan_command
from headway.config import load_config
from headway.planner import foresee, know_model, make_plan
from headway.planner.recipe_trace import Trace
from headway.task import find_recipe
from headway.trace.recipe import trace_step

SIZES = {
    "task.depth": st.integers(2, 6),
    "task.max_seq_len": st.sampled_from([256, 512, 1024]),
    "task.vocab_size": st.sampled_from([1024, 4096, 32768]),
    "train.precision": st.sampled_from(["bf16", "fp32"]),
    "train.activation_checkpoint": st.sampled_from(["true", "false"]),
    "optimizer.name": st.sampled_from(["muon", "adamw"]),
    "ema.decay": st.sampled_from(["0", "0.99"]),
    "batch.per_device": st.integers(8, 24),
}

# A trace takes a second: a failing draw is reported as it is, not made smaller for minutes.
WITHOUT_SHRINKING = settings(
    max_examples=6, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow]
)


def load(words: dict):
    overrides = ["recipe=nanochat", *(f"{key}={value}" for key, value in words.items())]
    return load_config(None, recipe=find_recipe, overrides=overrides, environ={})


@WITHOUT_SHRINKING
@given(words=st.fixed_dictionaries(SIZES), ranks=st.sampled_from([1, 2]), strategy=st.sampled_from(["ddp", "fsdp"]))
def test_formula_and_trace_agree_within_five_percent(words, ranks, strategy):
    loaded = load(words)
    here = machine(four_4090()[:ranks])
    plan = make_plan(loaded, here, loaded.recipe)
    plan = replace(plan, strategy=strategy if ranks > 1 else "single")
    job = {"recipe": "nanochat", "config": loaded.config.model_dump(mode="json"), "plan": plan.to_json()}
    known = {field.name for field in fields(Trace)}
    sizes = (plan.micro_batch // 2, plan.micro_batch)
    traces = [
        Trace(**{name: value for name, value in trace_step(job, size).items() if name in known}) for size in sizes
    ]
    formula = foresee(plan, loaded.config, here, know_model(loaded.recipe, loaded.config, None))
    traced = foresee(plan, loaded.config, here, know_model(loaded.recipe, loaded.config, traces))
    assert (formula.source, traced.source) == ("formula", "trace")
    assert abs(formula.used_bytes / traced.used_bytes - 1) <= 0.05
    assert formula.params == traced.params


@WITHOUT_SHRINKING
@given(
    words=st.fixed_dictionaries(
        {},
        optional={
            **SIZES,
            "lr.base": st.floats(1e-5, 1.0),
            "train.steps": st.integers(1, 10**6),
            "batch.accumulation": st.integers(1, 8),
            "lr.warmup_samples": st.integers(0, 1000),
        },
    )
)
def test_a_config_that_was_shown_plans_the_same_from_its_file(words):
    given_words = ["nanochat", *(f"{key}={value}" for key, value in words.items())]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "shown.yaml"
        shown = CliRunner().invoke(config_command, ["show", *given_words])
        assert shown.exit_code == 0, shown.output
        file.write_text(shown.stdout, encoding="utf-8")
        first, again = (ask(words) for words in (given_words, [str(file)]))
    assert first == again


def ask(words: list[str]) -> dict:
    """Return a plan without the places its values came from."""
    shown = CliRunner().invoke(plan_command, [*words, "--on", "2x4090", "--json"], catch_exceptions=False)
    told = json.loads(shown.stdout)
    told["rows"] = [(row["key"], row["value"]) for row in told["rows"]]
    return told
