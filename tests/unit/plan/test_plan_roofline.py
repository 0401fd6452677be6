"""Time by the data sheet: rates, formats, scaling."""

from dataclasses import replace

import pytest

from headway.plan.known import DECODERS, nanochat
from headway.plan.roofline import Card, link_rate, scale_step, time_decoder
from headway.plan.work import Adapter, Work

H100 = Card(
    name="H100",
    capability=(9, 0),
    memory_bytes=79e9,
    tflops_half=989,
    bandwidth_gb_s=3350,
    tflops_tf32=494,
    tflops_fp32=67,
    tflops_fp8=1979,
    link_gb_s=900,
    power_w=700,
)
RTX = Card(
    name="RTX 4090", capability=(8, 9), memory_bytes=25e9, tflops_half=165, bandwidth_gb_s=1008, pcie_gb_s=32, p2p=False
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
