"""`headway plan --model`: names, lists, limits and rows that do not mislead (issue 11, 6 to 8; issue 21)."""

import json

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.cli.main import root
from headway.messages import set_language
from headway.planner.models.known import find_decoder, most_positions, read_shape
from headway.planner.models.public import find_named, list_models


def run(*words):
    set_language("en")
    return CliRunner().invoke(
        root, list(words), env={"COLUMNS": "160", "LANG": "C.UTF-8", "LC_ALL": "", "HEADWAY_LANG": "en"}
    )


def test_models_and_cards_are_listed():
    names = json.loads(run("plan", "--model", "list", "--json").stdout)["models"]
    assert names == list_models() and {"llama", "qwen", "bert", "vit"} <= set(names)
    assert "llama-3.1-8b" in run("plan", "--model", "list").stdout
    cards = json.loads(run("plan", "--on", "list", "--json").stdout)["cards"]
    assert len(cards) >= 82
    assert all(card["gemm_half"] is not None or card["assumed_half"] for card in cards)
    told = run("plan", "--on", "list").stdout
    assert "no public measurement" in told and "torch-tests" in told


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("vit_b_8", "vit_base_patch16_224"),
        ("bert-huge", "bert-large"),
        ("qwen3-99b", "qwen3-8b"),
        ("gpt2-1.3b", "gpt2"),
    ],
)
def test_near_names_are_of_the_same_family(name, near):
    trouble = run("plan", "--model", name, "--on", "1x4090").exception.facts["near"]
    assert near in trouble and "resnet" not in trouble


def test_torchvision_names_bert_and_mixtures_of_experts_are_known():
    assert find_named("vit_b_16").patch == 16
    assert find_decoder("bert-base-uncased").params == pytest.approx(110e6, rel=0.02)
    assert find_decoder("google-bert/bert-large-uncased").params == pytest.approx(336e6, rel=0.02)
    moe = find_decoder("Qwen/Qwen3-30B-A3B")
    assert moe.params == pytest.approx(30.5e9, rel=0.01)
    assert moe.layers * moe.used_params + moe.embedding_params == pytest.approx(3.3e9, rel=0.03)
    config = {
        "model_type": "qwen3_moe",
        "num_hidden_layers": 48,
        "hidden_size": 2048,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "vocab_size": 151936,
    }
    assert read_shape(config) == moe


def test_more_tokens_than_a_table_of_positions_has_are_warned_about():
    assert (most_positions("gpt2-xl"), most_positions("facebook/opt-1.3b"), most_positions("llama-3-8b")) == (
        1024,
        2048,
        None,
    )
    assert "plan/model-positions" in run("plan", "--model", "gpt2", "seq=2048", "--on", "1x4090").stderr
    assert "plan/model-positions" not in run("plan", "--model", "gpt2", "seq=1024", "--on", "1x4090").stderr


def test_what_will_not_fit_has_no_speed_and_what_is_tight_is_not_said_to_fit():
    shown = run("plan", "--model", "llama-3.1-8b", "--on", "8xH20")
    assert "samples/s" not in shown.stdout.split("GPU memory breakdown")[0]
    assert "1 (tight)" in shown.stdout
    hint = shown.exception.facts["choices"]
    assert "bf16-pure" not in hint and "strategy=zero2" in hint


def test_a_number_of_samples_gives_the_time_of_the_whole_run():
    words = ["plan", "--model", "gpt2", "seq=1024", "batch=8", "samples=1000000", "epochs=3", "--on", "1x4090"]
    told = json.loads(run(*words, "--json").stdout)
    assert told["run_s"] == pytest.approx(3e6 / told["samples_s"])
    assert "375,000 ×" in run(*words).stdout


def test_a_small_recipe_takes_the_time_of_the_host_and_other_totals_are_named():
    told = json.loads(run("plan", "nanochat", "--on", "2x4090", "--json").stdout)
    assert told["forecast"]["step_s"] >= 5e-3
    assert "total batch" in run("plan", "nanochat", "--on", "2x4090", "--what-if").stdout


CHOICES = {
    "task.depth": ["2", "4", "6"],
    "batch.per_device": ["2", "4", "8"],
    "train.precision": ["bf16", "fp32", "auto"],
    "train.activation_checkpoint": ["true", "false"],
    "train.compile": ["true", "false"],
    "lr.base": ["3e-4", "0.01"],
    "name": ["first", "run-2"],
}
wishes = st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in CHOICES.items()})


@settings(max_examples=12, deadline=None)
@given(wished=wishes)
def test_what_config_show_prints_is_a_file_with_the_same_plan(tmp_path_factory, wished):
    words = [f"{key}={value}" for key, value in wished.items()]
    path = tmp_path_factory.mktemp("shown") / "shown.yaml"
    path.write_text(run("config", "show", "nanochat", *words).stdout, encoding="utf-8")
    plans = [
        json.loads(run("plan", source, *more, "--on", "8xH20", "--json").stdout)
        for source, more in (("nanochat", words), (str(path), []))
    ]
    first, second = ({key: plan[key] for key in plan if key not in ("rows", "warnings")} for plan in plans)
    assert first == second
