"""What each layout, number format and codebase holds, asked as a command line, and properties over random questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.cli.plan import plan
from headway.errors import PlanError, UsageError
from headway.machine import find_machine
from headway.planner.models.public import find_named, foresee_named, read_settings

GIB = 1 << 30
ROWS = Path(__file__).parents[3] / "bench" / "rows" / "asked.jsonl"


def ask(words: str) -> dict:
    """Return what `headway plan --model … --json` prints."""
    return run(["--model", *words.split(), "--json"])


def run(words: list[str]) -> dict:
    """Return what the command prints; a plan that does not fit is refused after it is printed."""
    shown = CliRunner().invoke(plan, words)
    if shown.exception is not None and not isinstance(shown.exception, PlanError):
        raise shown.exception
    return json.loads(shown.stdout)


# FSDP: no whole copy on a rank


@pytest.mark.parametrize("strategy", ["fsdp", "zero3"])
def test_sharded_weights_in_16_bits_have_no_whole_copy_on_a_rank(strategy):
    told = ask(f"llama-2-70b batch=2 seq=4096 strategy={strategy} recompute=full --on 128xA100-80GB")
    assert "weights-in-compute-type" not in told["parts"]
    assert told["verdict"] == "fits"
    assert "weights-in-compute-type" in ask("llama-2-7b strategy=ddp --on 2xH100")["parts"]


@pytest.mark.parametrize(("ranks", "published"), [(8, 82.4), (128, 67.0)])
def test_torchtitan_8b_is_near_what_it_published(ranks, published):
    told = ask(f"llama-3.1-8b batch=2 seq=8192 strategy=fsdp recompute=selective --on {ranks}xH100-96GB")
    assert told["reserved_bytes"] / GIB == pytest.approx(published, rel=0.06)


# ZeRO: 2 + 2 + 12/N, 2 + 14/N, 16/N


@pytest.mark.parametrize(("stage", "weights", "gradients"), [(1, 2.0, 2.0), (2, 2.0, 2 / 64), (3, 2 / 64, 2 / 64)])
def test_a_stage_of_zero_cuts_what_deepspeed_cuts(stage, weights, gradients):
    told = ask(f"gpt3-6.7b batch=1 seq=1024 accumulation=2 zero={stage} recompute=full --on 64xA100-80GB")
    each = {name: held / told["params"] for name, held in told["parts"].items()}
    assert each["weights"] == pytest.approx(weights, rel=1e-3)
    assert each["gradients"] == pytest.approx(gradients, rel=1e-3)
    assert each["optimizer-state"] == pytest.approx(12 / 64, rel=1e-3)
    assert told["strategy"] == f"zero{stage}"


def test_zero3_of_2_8b_on_8_is_near_deepspeeds_own_estimate():
    told = ask("pythia-2.8b batch=1 seq=1 zero=3 --on 8xA100-80GB")
    # Its estimator: 18 bytes of a weight over the ranks, and the largest layer, whole, in 4 bytes.
    largest = 50304 * 2560
    held = sum(size for name, size in told["parts"].items() if name != "communication-buffers")
    assert held == pytest.approx(18 * told["params"] / 8 + 4 * largest, rel=0.12)


def test_zero3_gathers_the_head_and_a_block_but_nothing_at_the_step():
    lora = ask("qwen-72b batch=1 seq=512 method=lora zero=3 recompute=full --on 4xA100-80GB")
    head, block = 152064 * 8192, 8192 * (4 * 8192 + 3 * 24576)
    assert lora["parts"]["gathered-weights"] == pytest.approx(2 * (head + block + 1e9 / 3), rel=0.01)
    full = ask("pythia-2.8b batch=1 seq=64 zero=3 recompute=full --on 4xA100-80GB")
    assert full["moment"] == "step"
    assert "gathered-weights" not in full["parts"]


def test_a_paged_optimizer_needs_no_room_for_its_state():
    words = "llama-3.1-8b batch=1 seq=2048 precision=bf16-pure recompute=full stack=axolotl --on 1xA6000 optimizer="
    plain, paged = ask(f"{words}adamw-8bit"), ask(f"{words}paged-adamw-8bit")
    assert "optimizer-state" not in paged["parts"]
    assert paged["allocated_bytes"] < plain["allocated_bytes"]
    assert paged["step_s"] == pytest.approx(plain["step_s"])


def test_segments_that_grow_leave_hardly_a_gap():
    words = "llama-3.1-8b batch=1 seq=4096 method=lora recompute=full --on 1xH100 allocator="
    fixed, growing = ask(f"{words}caching"), ask(f"{words}expandable")
    assert growing["allocated_bytes"] == fixed["allocated_bytes"]
    assert growing["reserved_bytes"] < fixed["reserved_bytes"]
    assert growing["reserved_bytes"] == pytest.approx(1.03 * growing["allocated_bytes"])


def test_zero_is_another_way_to_say_strategy_and_odd_stages_are_refused():
    assert ask("gpt2 zero=2 --on 2x4090") == ask("gpt2 strategy=zero2 --on 2x4090")
    with pytest.raises(UsageError) as refused:
        ask("gpt2 zero=4 --on 2x4090")
    assert refused.value.code == "plan/model-odd-key"
    with pytest.raises(UsageError) as refused:
        ask("gpt2 tensor=3 --on 4x4090")
    assert refused.value.code == "plan/model-odd-value"


# adapters and packed weights


def test_lora_in_fp32_keeps_frozen_weights_in_fp32():
    told = ask("llama-2-7b method=lora precision=fp32 batch=1 seq=512 --on 1xA100-40GB")
    assert told["parts"]["weights"] >= 4 * told["params"]
    narrow = ask("llama-2-7b method=lora batch=1 seq=512 --on 1xA100-40GB")
    assert narrow["parts"]["weights"] == pytest.approx(2 * narrow["params"], rel=0.03)
    loaded = ask("llama-2-7b method=lora frozen=fp32 batch=1 seq=512 --on 1xA100-40GB")
    assert loaded["parts"]["weights"] >= 4 * loaded["params"]


def test_4_bit_training_of_transformers_has_its_embeddings_in_fp32():
    table = 2 * 32000 * 4096
    wide = ask("llama-2-7b method=qlora recompute=full batch=1 seq=512 --on 1x4090")
    pure = ask("llama-2-7b method=qlora recompute=full batch=1 seq=512 precision=bf16-pure --on 1x4090")
    assert wide["parts"]["weights"] - pure["parts"]["weights"] == pytest.approx(2 * table, rel=1e-3)
    own = ask("llama-2-7b method=qlora recompute=full batch=1 seq=512 precision=bf16-pure stack=litgpt --on 1x4090")
    more = own["parts"]["weights"] - pure["parts"]["weights"] + 2 * own["trained"]  # its adapters are in bf16
    assert more == pytest.approx(0.36 * (own["params"] - table), rel=0.01)


def test_leaner_codebases_take_less_and_the_answer_says_which_it_is():
    words = "llama-3.1-8b method=qlora rank=32 recompute=full batch=1 seq=8192 {} --on 1x4090"
    plain, lean = ask(words.format("")), ask(words.format("stack=unsloth"))
    assert plain["stack"] == "hf" and lean["stack"] == "unsloth"
    assert lean["used_bytes"] < 0.5 * plain["used_bytes"]
    assert ask("gpt2 --on 1x4090")["stack"] == "torch"
    with pytest.raises(UsageError):
        ask("gpt2 stack=jax --on 1x4090")


# the residual stream and the step


def test_checkpoints_keep_the_residual_stream_in_its_own_type():
    tokens, stream = 32 * 4096, 16 * 2048
    autocast = ask("llama-3.2-1b batch=32 seq=4096 recompute=full loss=cut --on 1xH200")
    assert autocast["parts"]["activations"] > 4 * tokens * stream
    cut = ask("llama-3.2-1b batch=32 seq=4096 recompute=full loss=cut strategy=fsdp --on 8xH200")
    assert autocast["parts"]["activations"] - cut["parts"]["activations"] >= 2 * tokens * stream


def test_the_foreach_loop_of_adamw_writes_out_one_moment_and_the_fused_kernel_does_not():
    loop = ask("llama-3.2-1b batch=1 seq=64 accumulation=2 --on 1x4090")
    fused = ask("llama-3.2-1b batch=1 seq=64 accumulation=2 optimizer=adamw-fused --on 1x4090")
    assert loop["moment"] == "step" and loop["parts"]["temporaries"] == pytest.approx(4 * loop["params"], rel=1e-6)
    assert "temporaries" not in fused["parts"]
    pure = ask("llama-3.2-1b batch=1 seq=64 precision=bf16-pure --on 1x4090")
    assert pure["parts"]["temporaries"] == pytest.approx(2 * pure["params"], rel=1e-6)


# published rows, as commands


def test_published_runs_are_forecast_from_their_command_lines():
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    assert len(rows) >= 150 and len({row["source"] for row in rows}) >= 12
    errors, wrong = [], []
    for row in [one for one in rows if one["set"] == "open"][::5]:
        told = run(row["command"][1:])
        if told["verdict"] == ("will-not-fit" if row["verdict"] == "runs" else "fits"):
            wrong.append(row["command"])
        if row["memory_gib"]:
            errors.append(abs(told[f"{row['metric']}_bytes"] / GIB / row["memory_gib"] - 1))
    assert not wrong
    assert sorted(errors)[len(errors) // 2] <= 0.05


# properties

FAMILIES = [["gpt3-125m", "gpt3-1.3b", "gpt3-13b"], ["llama-3.2-1b", "llama-3.1-8b", "llama-3.1-70b"]]
CHOICES = {
    "precision": ["bf16", "fp16", "bf16-pure", "fp32"],
    "optimizer": ["adamw", "adamw-fused", "adamw-8bit", "paged-adamw-8bit", "sgd"],
    "method": ["full", "lora", "qlora"],
    "recompute": ["none", "selective", "full"],
    "strategy": ["ddp", "zero1", "zero2", "zero3", "fsdp"],
    "loss": ["auto", "whole", "chunked", "fused", "cut"],
    "lengths": ["equal", "varied"],
    "attention": ["flash", "flash3", "eager"],
    "offload": ["none", "optimizer"],
    "allocator": ["auto", "caching", "expandable"],
    "stack": ["auto", "torch", "hf", "axolotl", "torchtune", "unsloth", "litgpt"],
    "compile": ["true", "false"],
}
questions = st.fixed_dictionaries({key: st.sampled_from(values) for key, values in CHOICES.items()})
numbers = st.fixed_dictionaries(
    {"batch": st.integers(1, 64), "seq": st.sampled_from([128, 1024, 4096]), "accumulation": st.integers(1, 4)}
)


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    return {ranks: find_machine(tmp_path_factory.mktemp("m"), wanted=f"{ranks}xA100-80GB") for ranks in (1, 2, 8, 16)}


def used(name, words, machine):
    model = find_named(name)
    chosen = read_settings([f"{key}={value}" for key, value in words.items()], model)
    return foresee_named(model, chosen, machine).memory


@settings(max_examples=40, deadline=None)
@given(family=st.sampled_from(FAMILIES), words=questions, sizes=numbers)
def test_more_samples_more_tokens_and_a_larger_model_never_take_less(machines, family, words, sizes):
    plain = used(family[0], words | sizes, machines[8]).used_bytes
    assert used(family[0], words | sizes | {"batch": sizes["batch"] + 1}, machines[8]).used_bytes >= plain
    assert used(family[0], words | sizes | {"seq": 2 * sizes["seq"]}, machines[8]).used_bytes >= plain
    larger = [used(name, words | sizes, machines[8]).used_bytes for name in family]
    assert larger == sorted(larger)


@settings(max_examples=30, deadline=None)
@given(family=st.sampled_from(FAMILIES), words=questions, sizes=numbers)
def test_more_shards_never_take_more(machines, family, words, sizes):
    few, many = (used(family[1], words | sizes, machines[ranks]).used_bytes for ranks in (2, 16))
    assert many <= few * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(family=st.sampled_from(FAMILIES), words=questions, sizes=numbers, ranks=st.sampled_from([1, 8]))
def test_16_bits_never_take_more_than_fp32_but_for_copies_that_are_named(machines, family, words, sizes, ranks):
    wide = used(family[1], words | sizes | {"precision": "fp32"}, machines[ranks])
    for precision in ("bf16", "fp16", "bf16-pure"):
        half = used(family[1], words | sizes | {"precision": precision}, machines[ranks])
        # Autocast's 16-bit weights, and DeepSpeed's gradients in fp32, come on top of what fp32 has alone.
        copies = half.parts.get("weights-in-compute-type", 0.0)
        copies += half.parts.get("temporaries", 0.0) if words["strategy"].startswith("zero") else 0.0
        assert half.allocated_bytes - copies <= wide.allocated_bytes * (1 + 1e-9)
