"""A plan says what a reader would take for granted: the rate of the plots, the weights, what is a mere estimate."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from rich.console import Console

from fakes.machines import eight_h100, machine
from headway.cli.plan import plan
from headway.engine.rank import load_task
from headway.messages import language, say, set_language
from headway.planner import Standing, look_ahead, make_plan
from headway.start.source import load_words
from headway.ui.terminal.forecast import show_script_variants
from unit.planner.test_plan_script import GIB, forecast, trace


@pytest.fixture
def in_chinese():
    before = language()
    set_language("zh")
    yield
    set_language(before)


def ask(*words: str) -> dict:
    shown = CliRunner().invoke(plan, [*words, "--json"])
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)


def rows_of(told: dict) -> dict[str, dict]:
    return {row["key"]: row for row in told["rows"]}


@pytest.mark.parametrize("words", [(), ("lr.base=0.5",), ("task.matrix_lr=0.04",), ("lr.base=0.5", "lr.base_batch=16")])
def test_the_rate_of_a_plan_is_that_of_the_first_group(words):
    told = ask("nanochat", "--on", "2x4090", "task.depth=2", *words)
    loaded = load_words(("nanochat", "task.depth=2", *words))
    values = loaded.config.model_dump(mode="json")
    _, task = load_task({"recipe": "nanochat", "config": values, "plan": told})
    first = task.param_groups(task.build_model())[0].lr
    shown = rows_of(told)["lr"]
    assert float(shown["value"]) == pytest.approx(first * told["lr_factor"], rel=1e-3)
    assert "task.matrix_lr" in shown["origin"]


def test_a_plan_counts_the_weights_as_the_model_does():
    told = ask("nanochat", "--on", "2x4090", "task.depth=2")
    loaded = load_words(("nanochat", "task.depth=2"))
    _, task = load_task({"recipe": "nanochat", "config": loaded.config.model_dump(mode="json"), "plan": told})
    counted = sum(param.numel() for param in task.build_model().parameters())
    assert told["forecast"]["params"] == pytest.approx(counted, rel=0.01)
    assert "params" in rows_of(told)


def test_the_least_time_of_a_small_model_is_called_an_estimate():
    small, large = ask("nanochat", "--on", "2x4090", "task.depth=2"), ask("nanochat", "--on", "8xH100", "task.depth=20")
    assert rows_of(small)["step-time"]["origin_code"] == "plan/from-floor"
    assert rows_of(large)["step-time"]["origin_code"] == "plan/from-roofline"


def test_a_run_that_continues_is_told_what_is_left():
    loaded = load_words(("nanochat", "task.depth=2", "train.steps=200"))
    here = machine(eight_h100())
    first = make_plan(loaded, here, loaded.recipe)
    done = Standing(step=150, samples=150 * first.batch_samples)
    again = make_plan(loaded, here, loaded.recipe, before=first, done=done)
    told, _ = look_ahead(again, loaded, here, loaded.recipe, done=done)
    rows = {row.key: row for row in told.rows}
    assert "eta" not in rows
    assert rows["left"].origin.startswith("50 ×")
    whole, _ = look_ahead(first, loaded, here, loaded.recipe)
    assert {row.key: row for row in whole.rows}["eta"].origin.startswith("200 ×")


def test_a_chinese_plan_for_gpus_speaks_of_their_memory(in_chinese):
    shown = CliRunner().invoke(plan, ["nanochat", "--on", "2x4090", "--what-if"]).stdout
    assert "显存" in shown
    assert "内存" not in shown.replace("主机内存", "")
    shown = CliRunner().invoke(plan, ["--model", "gpt2", "--on", "2x4090"]).stdout
    assert "显存" in shown
    assert "内存" not in shown


def test_what_if_of_a_script_ends_with_the_largest_batch_that_fits():
    found = forecast(trace(), device_bytes=64 * GIB)
    most = found.largest_micro_batch
    assert most is not None
    assert found.with_batch(most).verdict == "fits" != found.with_batch(most + 1).verdict
    stream = io.StringIO()
    show_script_variants(found, Console(file=stream, width=100))
    told = stream.getvalue()
    assert say("plan/value-largest", num=most) in told
    assert " 8 " in told  # half the script's own


def test_other_batches_take_their_share_of_time():
    found = forecast(replace(trace(), flops=10**15, moved_bytes=10**9), device_bytes=64 * GIB)
    half = found.with_batch(8).trace
    assert (half.flops, half.moved_bytes) == (5 * 10**14, 5 * 10**8)
