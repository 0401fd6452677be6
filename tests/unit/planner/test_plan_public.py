"""Public models by name: their size, the step asked for, and what is said where it does not fit."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.cli.plan import plan
from headway.errors import UsageError
from headway.machine import find_machine
from headway.planner.models.public import find_named, foresee_named, largest_batch, other_ways, read_settings


@pytest.fixture
def on(tmp_path):
    return lambda wanted: find_machine(tmp_path, wanted=wanted)


def foresee(name, words, machine):
    model = find_named(name)
    return foresee_named(model, read_settings(words.split(), model), machine)


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 8030),
        ("mixtral-8x7b", 46703),
        ("gpt2", 124),
        ("resnet50", 25.56),
        ("vit_base_patch16_224", 86.6),
        ("convnext_tiny", 28.6),
        ("swin_tiny_patch4_window7_224", 28.3),
    ],
)
def test_a_name_stands_for_the_published_size(on, name, millions):
    assert foresee(name, "", on("1x4090")).params / 1e6 == pytest.approx(millions, rel=0.015)


def test_a_config_file_says_the_same_as_the_name(tmp_path, on):
    config = {
        "model_type": "llama",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "head_dim": None,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    for path in (tmp_path, tmp_path / "config.json"):
        assert find_named(str(path)).shape == find_named("llama-3.1-8b").shape
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "t5"}))
    with pytest.raises(UsageError, match="t5"):
        find_named(str(tmp_path))


def test_each_saving_saves_and_more_samples_take_more(on):
    machine = on("2xA100")
    plain = foresee("llama-3.2-1b", "batch=4", machine)
    assert foresee("llama-3.2-1b", "batch=8", machine).memory.used_bytes > plain.memory.used_bytes
    changes = dict(other_ways(plain, machine))
    assert {"optimizer=adamw-8bit", "strategy=fsdp", "recompute=full", "method=lora", "method=qlora"} <= set(changes)
    assert all(other.memory.used_bytes < plain.memory.used_bytes for other in changes.values())
    again = dict(other_ways(foresee("llama-3.2-1b", "method=qlora", machine), machine))
    assert "method=qlora recompute=full" not in again and "recompute=full" in again


def test_the_largest_batch_fits_and_one_more_does_not(on):
    machine = on("1x4090")
    found = foresee("resnet50", "precision=fp32", machine)
    most = largest_batch(found, machine)
    assert most > 50
    assert foresee("resnet50", f"precision=fp32 batch={most}", machine).verdict == "fits"
    assert foresee("resnet50", f"precision=fp32 batch={most + 1}", machine).verdict != "fits"


@pytest.mark.parametrize(
    ("name", "words", "code"),
    [
        ("resnet50", "seq=4", "plan/model-odd-key"),
        ("gpt2", "image=224", "plan/model-odd-key"),
        ("gpt2", "batch", "plan/model-odd-key"),
        ("gpt2", "batch=0", "plan/model-odd-value"),
        ("gpt2", "batch=1e9", "plan/model-odd-value"),
        ("gpt2", "precision=int8", "plan/model-odd-value"),
        ("lama-3.1-8b", "", "plan/model-unknown"),
        ("/no/such/config.json", "", "plan/model-unread"),
    ],
)
def test_what_has_no_meaning_is_refused_with_what_has(name, words, code, on):
    with pytest.raises(UsageError) as refused:
        foresee(name, words, on("1x4090"))
    assert refused.value.code == code


def test_a_machine_without_a_gpu_is_refused(on):
    with pytest.raises(UsageError) as refused:
        foresee("gpt2", "", replace(on("1x4090"), gpus=()))
    assert refused.value.code == "plan/model-needs-gpu"


def test_a_model_and_a_script_are_two_questions():
    with pytest.raises(UsageError) as refused:
        plan.main(["--model", "gpt2", "--script", "train.py"], standalone_mode=False)
    assert refused.value.code == "plan/model-and-script"


def test_the_command_prints_a_forecast_and_tells_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(plan, ["--model", "gpt2", "batch=8", "seq=1024", "--on", "1x4090"])
    assert shown.exit_code == 0, shown.output
    assert "124M" in shown.output and "fits" in shown.output and "method=qlora" in shown.output
    told = CliRunner().invoke(plan, ["--model", "gpt2", "batch=8", "--on", "1x4090", "--json"])
    data = json.loads(told.output)
    assert data["schema"] == "plan-model/1" and data["verdict"] == "fits" and data["largest_batch"] >= 8
    assert data["allocated_bytes"] == pytest.approx(sum(data["parts"].values()), abs=10)


@pytest.mark.parametrize("card", ["T4", "V100-32G", "2080 Ti", "P40"])
def test_a_card_without_bf16_is_planned_in_fp16_and_bf16_is_warned_about(card):
    words = ["--model", "gpt2", "--on", f"2x{card}", "--json"]
    usual, asked = (CliRunner().invoke(plan, [*words, *more]) for more in ((), ("precision=bf16",)))
    assert usual.exit_code == asked.exit_code == 0
    assert json.loads(usual.stdout)["precision"] == "fp16" and usual.stderr == ""
    assert "plan/model-bf16-emulated" in asked.stderr and "precision=fp16" in asked.stderr
    slower = json.loads(asked.stdout)["step_s"] / json.loads(usual.stdout)["step_s"]
    assert slower > (2 if card != "P40" else 1.2)


def test_cards_with_bf16_keep_it_whoever_made_them():
    for card in ("8xMI300X", "8x910B", "1xA10", "8xH20"):
        told = CliRunner().invoke(plan, ["--model", "gpt2", "--on", card, "--json"])
        assert json.loads(told.stdout)["precision"] == "bf16" and told.stderr == ""


def test_eight_bridged_cards_wait_for_each_other_as_they_do_over_pcie():
    def step(card: str) -> float:
        words = ["--model", "llama-3.2-1b", "--on", card, "--json"]
        return json.loads(CliRunner().invoke(plan, words).stdout)["step_s"]

    assert step("8xA100-PCIe") > 1.5 * step("8xA100")
    assert step("2xA100-PCIe") < 1.2 * step("2xA100")


@settings(deadline=None, max_examples=6)
@given(
    name=st.sampled_from(("gpt2", "qwen2.5-0.5b", "llama-3.1-8b", "mixtral-8x7b", "qwen2.5-72b")),
    card=st.sampled_from(("1x4090", "8xH20", "8xA100-PCIe", "16xH100", "4xMI300X", "2xT4", "8x910B", "1xL4")),
    batch=st.integers(1, 8),
    seq=st.integers(64, 16384),
    more=st.lists(
        st.sampled_from(("method=lora", "method=qlora", "recompute=full", "strategy=fsdp", "precision=fp32")),
        unique_by=lambda word: word.partition("=")[0],
    ),
)
def test_asked_as_a_command_time_rises_with_batch_and_length(name, card, batch, seq, more):
    def step(batch: int, seq: int) -> float:
        words = ["--model", name, "--on", card, f"batch={batch}", f"seq={seq}", *more, "--json"]
        return json.loads(CliRunner().invoke(plan, words).stdout)["step_s"]

    now = step(batch, seq)
    assert step(batch + 1, seq) >= now and step(batch, seq + 64) >= now
