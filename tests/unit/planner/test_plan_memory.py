"""Formula forecasts: parameters, the two moments of the peak, strategies, verdicts."""

from dataclasses import replace

import pytest

from headway.planner.memory import MemoryForecast, weigh_decoder, weigh_loading
from headway.planner.models.decoder import Decoder, keep_in_block
from headway.planner.models.known import DECODERS, find_decoder, nanochat
from headway.planner.step import Adapter, Work

GIB = 1 << 30
BF16 = Work(micro_batch=2, seq_len=4096, weight_bytes=2, grad_bytes=2, state_bytes=4)


@pytest.mark.parametrize(
    ("name", "billions"),
    [("llama-2-7b", 6.74), ("llama-3.1-8b", 8.03), ("llama-3.2-3b", 3.21), ("mistral-7b", 7.24), ("gpt2-large", 0.774)],
)
def test_published_shapes_have_their_published_number_of_weights(name, billions):
    assert DECODERS[name].params / 1e9 == pytest.approx(billions, rel=0.005)


def test_a_model_is_found_under_the_names_people_use():
    assert find_decoder("Llama 3.1 8B") is DECODERS["llama-3.1-8b"]
    assert find_decoder("Llama 2 7 B") is DECODERS["llama-2-7b"]
    assert find_decoder("Phi-3-mini-4k-instruct") is DECODERS["phi-3-mini"]
    assert find_decoder("no-such-model") is None


def test_nanochat_shape_follows_from_its_depth():
    shape = nanochat(20)
    assert (shape.hidden, shape.heads, shape.params) == (1280, 10, 560988160)


def test_a_full_fine_tune_without_recomputation_peaks_at_the_start_of_backward():
    # Llama 3.2 3B, 2 x 4096 packed, eager, bf16 AdamW: 60.0 GiB measured (torchtune's table).
    shape = replace(DECODERS["llama-3.2-3b"], expand_kv=True)
    forecast = weigh_decoder(shape, BF16)
    assert forecast.moment == "backward"
    assert forecast.allocated_bytes / GIB == pytest.approx(60.0, rel=0.05)


def test_with_recomputation_the_optimizer_step_can_be_the_peak():
    shape = DECODERS["llama-3.2-3b"]
    forecast = weigh_decoder(shape, replace(BF16, recompute="full", loss="chunked", compiled=True))
    assert forecast.moment == "step"
    assert forecast.parts["gradients"] == shape.params * 2
    assert "activations" not in forecast.parts


def test_sharding_cuts_states_and_gathers_blocks():
    shape = DECODERS["llama-3.1-8b"]
    whole = weigh_decoder(shape, BF16)
    cut = weigh_decoder(shape, replace(BF16, shard_weights=8, shard_grads=8, shard_states=8), ranks=8)
    assert cut.parts["weights"] == whole.parts["weights"] / 8
    assert cut.parts["optimizer-state"] == whole.parts["optimizer-state"] / 8
    assert cut.parts["gathered-weights"] > 0


def test_frozen_weights_have_no_gradient_and_keep_fewer_inputs():
    shape = DECODERS["llama-2-7b"]
    adapter = Adapter(params=4_194_304)
    full = dict(keep_in_block(shape, BF16))
    lora = dict(keep_in_block(shape, replace(BF16, adapter=adapter)))
    assert "down's input" in full
    assert "down's input" not in lora
    assert (
        weigh_decoder(shape, replace(BF16, adapter=adapter)).allocated_bytes
        < weigh_decoder(shape, BF16).allocated_bytes
    )


def test_parts_add_up_and_nothing_is_negative():
    forecast = weigh_decoder(DECODERS["gpt2"], Work(micro_batch=4, seq_len=1024))
    assert sum(forecast.parts.values()) == forecast.allocated_bytes
    assert min(forecast.parts.values()) > 0
    assert forecast.allocated_bytes < forecast.reserved_bytes < forecast.used_bytes


def test_memory_grows_with_the_batch_and_the_vocabulary():
    small = Decoder(layers=4, hidden=256, heads=4, vocab=1000, ffn=1024)
    work = Work(micro_batch=4, seq_len=512)
    one = weigh_decoder(small, work).allocated_bytes
    assert weigh_decoder(small, replace(work, micro_batch=8)).allocated_bytes > one
    assert weigh_decoder(replace(small, vocab=2000), work).allocated_bytes > one


@pytest.mark.parametrize(("have", "verdict"), [(12e9, "fits"), (10.8e9, "tight"), (10e9, "will-not-fit")])
def test_verdicts_leave_room_for_context_and_fragments(have, verdict):
    assert MemoryForecast(parts={"weights": 10e9}, moment="step").judge(have + 0.6e9 * (verdict == "fits")) == verdict


def test_loading_whole_weights_before_cutting_them_is_a_peak_of_its_own():
    forecast = weigh_loading(10e9, ranks=2, whole=1e9)
    assert forecast.moment == "load"
    assert forecast.allocated_bytes == pytest.approx(16e9, rel=0.01)
