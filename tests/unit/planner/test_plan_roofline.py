"""Time by the data sheet: rates, formats, scaling."""

from dataclasses import replace

import pytest

from headway.planner.models.convnet import Map, Tape
from headway.planner.models.known import DECODERS, nanochat
from headway.planner.models.vision import ResNet, add_ssd
from headway.planner.roofline import Card, link_rate, scale_step, time_convnet, time_decoder
from headway.planner.step import Adapter, Work

H100 = Card(
    name="H100",
    capability=(9, 0),
    memory_bytes=79e9,
    tflops_half=989,
    gemm_half=791,
    bandwidth_gb_s=3350,
    tflops_tf32=494,
    tflops_fp32=67,
    tflops_fp8=1979,
    link_gb_s=900,
    power_w=700,
)
RTX = Card(
    name="RTX 4090",
    capability=(8, 9),
    memory_bytes=25e9,
    tflops_half=165,
    gemm_half=129,
    bandwidth_gb_s=1008,
    pcie_gb_s=32,
    p2p=False,
)
WORK = Work(micro_batch=32, seq_len=2048, compiled=True, loss="fused", shard_states=8)


def test_nanochat_d20_on_eight_h100_is_near_its_measured_step():
    found = time_decoder(nanochat(20), WORK, H100, ranks=8)  # 0.48 s measured
    assert found.step_s == pytest.approx(0.48, rel=0.1)
    assert found.samples == 256
    assert 0.35 < found.mfu < 0.6


def test_accumulation_multiplies_the_work_and_not_the_update():
    once = time_decoder(nanochat(12), WORK, H100)
    twice = time_decoder(nanochat(12), replace(WORK, accumulation=2), H100)
    assert twice.math_s == pytest.approx(2 * once.math_s)
    assert twice.update_s == once.update_s
    assert twice.samples == 2 * once.samples


def test_recomputation_costs_time_and_adapters_save_it():
    shape = DECODERS["llama-3.1-8b"]
    work = Work(micro_batch=1, seq_len=2048)
    plain = time_decoder(shape, work, H100).step_s
    assert time_decoder(shape, replace(work, recompute="full"), H100).step_s > plain
    assert time_decoder(shape, replace(work, adapter=Adapter(params=1_000_000)), H100).step_s < plain


def test_cards_without_a_link_or_peer_access_talk_slowly():
    assert link_rate(H100, 8) > 10 * link_rate(RTX, 2)
    assert link_rate(H100, 16) < link_rate(H100, 8)


def test_scaling_is_never_more_than_perfect_and_falls_with_the_gradient():
    alone = 0.1
    steps = [scale_step(alone, RTX, ranks=ranks, trained=100e6) for ranks in (1, 2, 4, 8)]
    assert steps[0] == alone
    assert steps == sorted(steps)
    assert scale_step(alone, RTX, ranks=8, trained=10e9) > 10 * alone


def test_resnet_50_on_a_v100_is_near_its_measured_step():
    tape = Tape()
    outs = ResNet(depth=50).walk(tape, 224, 224)
    tape.linear(Map(outs[-1].channels, 1, 1), 1000)
    assert tape.params == pytest.approx(25.5e6, rel=0.01)
    v100 = Card(
        name="V100",
        capability=(7, 0),
        memory_bytes=16e9,
        tflops_half=125,
        gemm_half=93.75,
        bandwidth_gb_s=900,
        tflops_fp32=15.7,
    )
    half = time_convnet(tape, Work(micro_batch=256, compute_bytes=2), v100)
    assert half.samples_s == pytest.approx(1178, rel=0.15)  # 1156 and 1200 measured
    full = time_convnet(tape, Work(micro_batch=112, compute_bytes=4), v100, number="fp32")
    assert full.samples_s == pytest.approx(362, rel=0.15)  # 356 and 367 measured


def test_ssd_has_its_published_size():
    tape = Tape()
    add_ssd(tape, ResNet(depth=50, strides=(1, 2, 1, 1), stages=3).walk(tape, 300, 300))
    assert tape.params == pytest.approx(22.9e6, rel=0.05)


def test_tensor_ranks_wait_for_each_other_and_less_so_piece_by_piece():
    shape, work = DECODERS["llama-3.1-8b"], Work(micro_batch=4, seq_len=8192, tensor=8, sequence_parallel=True)
    waits = time_decoder(shape, work, H100, ranks=8).exposed_s
    assert waits > 0.1
    assert time_decoder(shape, replace(work, async_tensor=True), H100, ranks=8).exposed_s == pytest.approx(waits / 2)
    assert time_decoder(shape, replace(work, tensor=1), H100).exposed_s == 0.0


def test_eight_bits_help_a_wide_model_and_not_a_narrow_one():
    work = Work(micro_batch=8, seq_len=1024, compiled=True)

    def gain(name: str) -> float:
        half, eight = (time_decoder(DECODERS[name], work, H100, number=number).math_s for number in ("half", "fp8"))
        return half / eight

    assert gain("llama-3.1-70b") > 1.25
    assert gain("gpt2-medium") < 1.1


def test_older_attention_kernels_are_slower_over_long_rows():
    shape, work = DECODERS["llama-3.1-8b"], Work(micro_batch=1, seq_len=32768)
    older = replace(work, older_attention=True)
    for card in (H100, RTX):
        assert time_decoder(shape, older, card).math_s > 1.2 * time_decoder(shape, work, card).math_s


def test_a_token_pays_only_for_the_experts_it_meets():
    shape, work = DECODERS["mistral-7b"], Work(micro_batch=1, seq_len=2048)
    many = replace(shape, experts=8, active=1)
    plain, sparse = (time_decoder(one, work, H100).math_s for one in (shape, many))
    assert sparse == pytest.approx(plain, rel=0.001)
    assert time_decoder(replace(many, active=2), work, H100).math_s > 1.5 * plain
