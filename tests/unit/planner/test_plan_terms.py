"""Terms of the decoder family beyond the plain block: experts, adapters by what they keep, validation, side tables."""

from dataclasses import replace

import pytest

from headway.planner.memory import add_held, weigh_decoder, weigh_validation
from headway.planner.models.decoder import Decoder, changed_bytes, keep_in_block
from headway.planner.models.known import DECODERS, nanochat
from headway.planner.step import Adapter, Work

GIB = 1 << 30
SHAPE = Decoder(layers=12, hidden=512, heads=8, vocab=50304, ffn=2048, mlp="gelu", norm="layer", tied=True)
WORK = Work(micro_batch=4, seq_len=1024, weight_bytes=2, master_bytes=4)


def kept(shape: Decoder, work: Work) -> dict[str, float]:
    """Return bytes a token by name, names that come twice added up."""
    out: dict[str, float] = {}
    for name, size in keep_in_block(shape, work):
        out[name] = out.get(name, 0.0) + size
    return out


def test_experts_add_weights_but_a_token_meets_only_its_own():
    many = replace(SHAPE, experts=8, active=2)
    assert many.block_params == SHAPE.block_params + 7 * SHAPE.mlp_params + 8 * 512
    assert many.used_params == many.block_params - 6 * SHAPE.mlp_params
    assert replace(many, active=8).used_params == many.block_params


def test_ranks_that_share_the_experts_hold_fewer_of_them():
    many = replace(SHAPE, experts=8)
    alone, shared = (weigh_decoder(many, replace(WORK, expert_parallel=over)) for over in (1, 4))
    experts = 12 * 8 * SHAPE.mlp_params * WORK.weight_bytes
    assert alone.parts["weights"] - shared.parts["weights"] == pytest.approx(0.75 * experts)


def test_states_of_experts_are_cut_over_the_ranks_that_hold_the_same_ones():
    many = replace(SHAPE, experts=8)
    cut = weigh_decoder(many, replace(WORK, expert_parallel=4, shard_states=4))
    dense = many.params - 12 * 8 * SHAPE.mlp_params
    local = 12 * 2 * SHAPE.mlp_params
    assert cut.parts["optimizer-state"] == pytest.approx((dense / 4 + local) * 12)


def test_an_expert_with_whole_matrices_sees_only_its_ranks_part_of_the_tokens():
    many, work = replace(SHAPE, experts=8, active=2), replace(WORK, tensor=2, sequence_parallel=True)
    gathered = kept(many, work)["tokens sorted by expert"]
    assert kept(many, replace(work, expert_tensor=1))["tokens sorted by expert"] == gathered / 2
    assert "tokens sorted by expert" not in kept(SHAPE, work)


def test_an_adapter_keeps_its_input_in_its_own_type_for_each_linear():
    shape = DECODERS["llama-3.2-3b"]
    lora = Adapter(params=1, inputs=("q", "v"), dropout=False, cast_bytes=4.0)
    assert kept(shape, replace(WORK, adapter=lora))["adapter inputs"] == 2 * 4 * 3072
    once = kept(shape, replace(WORK, adapter=replace(lora, cast_bytes=None)))
    assert once["adapter inputs"] == 2 * 3072


def test_an_adapter_that_changes_whole_matrices_keeps_the_change_in_every_block():
    shape = DECODERS["llama-3.2-3b"]
    plain = replace(WORK, adapter=Adapter(params=1, inputs=(), dropout=False))
    dense = replace(WORK, adapter=Adapter(params=1, inputs=(), changed=("q", "v"), change_bytes=4.0))
    assert changed_bytes(shape, dense) == 4 * 3072 * (3072 + 1024)
    more = weigh_decoder(shape, dense).allocated_bytes - weigh_decoder(shape, plain).allocated_bytes
    assert more == pytest.approx(28 * changed_bytes(shape, dense))
    assert changed_bytes(shape, WORK) == 0.0


def test_scaled_outputs_and_trained_norms_are_kept():
    shape = DECODERS["llama-3.2-3b"]
    scales = Adapter(params=1, inputs=(), outputs=("k", "v"), output_bytes=2.0)
    assert kept(shape, replace(WORK, adapter=scales))["adapter outputs"] == 2 * 2 * 1024
    norms = Adapter(params=1, inputs=(), norms=True)
    assert kept(shape, replace(WORK, adapter=norms))["normed, before the gain"] == 2 * 2 * 3072


def test_packed_weights_may_keep_inputs_that_nothing_needs():
    work = replace(WORK, adapter=Adapter(params=1))
    assert "down's input" not in kept(SHAPE, work)
    assert "down's input" in kept(SHAPE, replace(work, packed_inputs=True))


def test_turned_queries_leave_the_one_product_behind():
    shape = replace(SHAPE, one_qkv=True)
    assert "qkv product" in kept(shape, WORK)
    assert "qkv product" not in kept(replace(shape, rotary=False), WORK)


def test_dropout_masks_and_mixed_values_take_their_bytes():
    assert sum(kept(SHAPE, replace(WORK, dropout=True)).values()) - sum(kept(SHAPE, WORK).values()) == 2 * 512
    assert kept(replace(SHAPE, mixed_values=True), WORK)["values before the mixing"] == 2 * 512


def test_gathered_inputs_are_whole_on_every_tensor_rank():
    work = replace(WORK, tensor=4, sequence_parallel=True)
    cut, whole = (kept(SHAPE, replace(work, keeps_gathered=gathered))["norm outputs"] for gathered in (False, True))
    assert whole == 4 * cut


def test_a_long_validation_is_set_by_its_logits():
    shape, work = nanochat(12, vocab=50304), replace(WORK, compiled=True, loss="fused")
    step = weigh_decoder(shape, work)
    long = weigh_validation(shape, work, tokens=262144)
    assert long.moment == "validation"
    assert long.parts["logits-and-loss"] / GIB == pytest.approx(24.56, abs=0.01)
    assert long.allocated_bytes > step.allocated_bytes
    assert "gradients" not in long.parts


def test_a_holder_can_be_added_to_a_forecast():
    forecast = weigh_decoder(SHAPE, WORK)
    more = add_held(add_held(forecast, "position-tables", 1e9), "position-tables", 1e9)
    assert more.allocated_bytes == pytest.approx(forecast.allocated_bytes + 2e9)
    assert more.moment == forecast.moment


def test_copies_of_logits_are_cut_over_tensor_ranks():
    work = replace(WORK, tensor=2)
    logits = [weigh_decoder(SHAPE, replace(work, logit_copies=size)).parts["logits-and-loss"] for size in (0.0, 4.0)]
    assert logits[1] - logits[0] == 4 * 50304 / 2 * WORK.tokens


def test_a_gated_nanochat_has_as_many_weights_as_a_plain_one():
    assert nanochat(24, mlp="swiglu").params == pytest.approx(nanochat(24).params, rel=1e-3)
