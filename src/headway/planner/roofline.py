"""Time of a step before anything has run: arithmetic, memory traffic, launches and communication.

Matrix products run at the rate somebody has measured on that card (machine/cards.json names the source), times the
share of it that training keeps up; attention at the share that flash attention was measured at. The shares are
calibrated on published runs (docs/decisions/0016-memory-forecast.md, 0032-measured-rates.md). A measured step always
overrules them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from headway.planner.models.convnet import Tape
from headway.planner.models.decoder import Decoder, block_flops, count_lora, keep_in_block
from headway.planner.step import Work

Number = Literal["fp32", "tf32", "half", "fp8", "emulated"]
"""How products are computed; `emulated`: bf16 on a card that has no units for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a step needs to know of a GPU."""

    name: str
    capability: tuple[int, int] | None
    memory_bytes: float
    tflops_half: float
    gemm_half: float
    """TFLOPS that large 16-bit matrix products were measured at, on this card or on `derived_from`."""
    bandwidth_gb_s: float
    derived_from: str | None = None
    """The card whose share of its data sheet stands for this one's, which nobody has measured."""
    tflops_tf32: float | None = None
    tflops_fp32: float | None = None
    tflops_fp8: float | None = None
    gemm_tf32: float | None = None
    gemm_fp32: float | None = None
    gemm_fp8: float | None = None
    gemm_bf16: float | None = None
    """The same of other formats; none: a typical share of the data sheet."""
    has_bf16: bool = True
    """Whether bf16 runs on its matrix units."""
    link_gb_s: float | None = None
    """Both directions of NVLink or its like; none: PCIe alone."""
    has_bridge: bool = False
    """The link joins two cards only; a third is reached over PCIe."""
    pcie_gb_s: float = 16.0
    p2p: bool = True
    node: int = 8
    """Cards of one machine; more ranks than these meet over the network."""
    network_gb_s: float | None = None
    """What a machine has to the others, one way; none: what is usual for such cards."""
    power_w: float | None = None

    def peak(self, number: Number) -> float:
        """Return FLOP/s of the data sheet in a number format; what the card lacks runs in the next wider one."""
        if number == "fp8" and self.tflops_fp8:
            return self.tflops_fp8 * 1e12
        if number in ("fp8", "half", "emulated"):
            return self.tflops_half * 1e12
        if number == "tf32" and self.tflops_tf32:
            return self.tflops_tf32 * 1e12
        return (self.tflops_fp32 or self.tflops_half / 8) * 1e12

    def gemm(self, number: Number) -> float:
        """Return FLOP/s that large matrix products reach: measured, or as cards of its kind do."""
        measured = {
            "half": self.gemm_half,
            "fp32": self.gemm_fp32,
            "tf32": self.gemm_tf32,
            "fp8": self.gemm_fp8,
            "emulated": self.gemm_bf16,
        }[number]
        if measured is not None:
            return measured * 1e12
        match number:
            case "half":
                return self.gemm_half * 1e12
            case "fp32":
                return self.peak("fp32") * TYPICAL_FP32.get(self.generation, 0.75)
            case "emulated":
                return self.gemm("fp32") * EMULATED
            case "tf32":
                share = self.peak("tf32") / self.peak("half") if self.tflops_tf32 else 0.0
                return self.gemm("half") * share if share else self.gemm("fp32")
            case "fp8":
                return self.gemm("half") * self.peak("fp8") / self.peak("half") * TYPICAL_FP8

    @property
    def is_power_limited(self) -> bool:
        """Whether large products stay well below the data sheet."""
        return self.gemm("half") < UNLIMITED * self.peak("half")

    @property
    def generation(self) -> str:
        """Return the generation whose shares apply."""
        for maker, generation in (("Instinct", "cdna"), ("Ascend", "ascend")):
            if self.name.startswith(maker):
                return generation
        major, minor = self.capability or (8, 0)
        if major < 8:
            return "volta"
        if (major, minor) == (8, 0):
            return "ampere"
        return {9: "hopper", 10: "blackwell"}.get(major, "consumer")


TYPICAL_FP32 = {"volta": 0.9, "ampere": 0.95, "consumer": 0.65, "hopper": 0.77, "blackwell": 0.88}
TYPICAL_FP8 = 0.89
"""Shares of the data sheet at which cards of a generation were measured, for those that nobody has measured; of 8-bit
products, against 16 bits."""
EMULATED = 0.6
"""Rate of bf16 without units for it, against fp32 (measured: T4 0.5, 2080 Ti 0.56, P100 0.7, V100 0.74)."""
SUSTAINED = {
    "volta": 1.0,
    "ampere": 0.97,
    "consumer": 0.95,
    "hopper": 0.83,
    "blackwell": 0.72,
    "cdna": 0.75,
    "ascend": 0.7,
}
"""Share of the measured rate that the products of a training step keep up: long runs reach the power limit."""
SUSTAINED_FP8 = 0.92
"""The same for 8-bit products beside 16-bit ones: scales have to be found."""
UNLIMITED, UNLIMITED_SHARE, UNLIMITED_ATTENTION = 0.9, 0.95, 0.75
"""A card measured above this share of its data sheet has power to spare, and keeps up this much (H20, L20)."""
HALF_WIDTH = {"fp32": 0, "tf32": 270, "half": 270, "fp8": 1000, "emulated": 0}
"""Width at which they reach half of that: small models leave the units waiting, and casts to 8 bits weigh more."""
ATTENTION = {
    "volta": 0.5,
    "ampere": 0.75,
    "consumer": 0.95,
    "hopper": 0.55,
    "blackwell": 0.5,
    "cdna": 0.5,
    "ascend": 0.6,
}
"""Share of the products' rate that flash attention reaches with endless rows and heads, forward and backward."""
NEW_ATTENTION = {"hopper": 0.82, "blackwell": 0.8}
"""The same of kernels written for these cards (flash attention 3 and 4)."""
PLAIN_ATTENTION = {"hopper": 0.25}
PLAIN = 0.4
"""The same, at every length, of kernels that leave a card's new units idle or write the attention matrix out."""
HALF_LENGTH, HALF_HEAD = 600, 20
"""Tokens of a row and channels of a head at which attention reaches half of that: short rows are half masked."""
CONV = {"volta": 0.59, "ampere": 0.53, "consumer": 0.74}
CONV_FORMATS = {"fp32": 1.0, "tf32": 0.59}
"""Share of the products' rate that convolutions reach, in 16 bits and in wider formats."""
TRAFFIC_CONV = 8.0
"""Times a kept byte of a convolution crosses the memory bus: its norm and activation read and write it again."""
BANDWIDTH = 0.8
"""Share of the memory bandwidth that streaming kernels reach."""
TRAFFIC, TRAFFIC_COMPILED = 5.5, 0.6
"""Times a kept byte crosses the memory bus in forward and backward, eager and compiled."""
TRAFFIC_SCORES = 12.0
"""Times an attention matrix crosses it where it is written out: scores, mask, softmax and dropout, forward and back."""
_TRACED_WIDTH = 1280
"""Width that stands for all products of a traced model, whose layers differ."""
LAUNCH_S = 10e-6
"""One kernel from the host."""
KERNELS, ADAPTER_KERNELS, PACKED_KERNELS = 110, 30, 20
"""Kernels of one block, of one linear's adapter, and to unpack one 4-bit linear, forward and backward, eager; a third
of it when compiled."""
HOST_STEP_S, HOST_PASS_S = 2e-3, 3e-3
"""Least time of a step, and of each of its micro-batches, however small the model: Python, the loader, some hundred
launches and the optimizer's loop."""
ZERO3_HOST_S = 4.5e-3
"""Time of ZeRO-3's hooks on the host for one block in one pass (published steps of short rows: 3.6 to 6 ms)."""
HOST_GB_S = 150.0
"""Rate at which a machine's processors update an optimizer state that lives on the host."""
AGAIN = {"none": 0.0, "selective": 0.25, "full": 1.0, "offload": 1.0}
"""Share of a forward pass that is done a second time."""
ADAPTER_CAST, ADAPTER_PLAIN = (14.0, 16.0), (7.0, 9.0)
"""Bytes of a channel that goes into or out of an adapter, forward and backward: its own casts, products, scaling and
sum, with fp32 adapters (PEFT) and with adapters of the compute type."""
UNPACK, UNPACK_COMPILED = 16.0, 5.0
"""Bytes' worth of time to unpack one 4-bit weight, in every pass over it."""
LINK, PCIE, NO_P2P = 0.7, 0.6, 0.5
"""Shares of a link's one-way rate that collectives reach; without peer access everything crosses the host."""
NETWORK_GB_S = {"volta": 12.5, "ampere": 200.0, "hopper": 400.0, "blackwell": 400.0, "cdna": 200.0, "ascend": 200.0}
"""Rate a machine of eight has to the others, one way: one adapter of 100 Gb/s, eight of 200 and of 400."""
ADAPTER_GB_S = 12.5
"""Least of it: one adapter of 100 Gb/s, however few cards a machine has."""
NODE = 8
REPLICA, STRAGGLE = 0.03, 0.01
"""Share of a step lost to being one of several (hooks, shared power and host), and, for each doubling of the ranks, to
waiting for the slowest."""
ASYNC_TENSOR = 0.5
"""Share of the tensor ranks' exchange that still shows when it is cut up behind the products."""
OVERLAP = 0.85
"""Share of backward behind which communication can hide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedForecast:
    """Seconds of one optimizer step on every rank, and what they are spent on."""

    math_s: float
    traffic_s: float
    launch_s: float
    update_s: float
    exposed_s: float
    """Communication that nothing hides."""
    samples: int
    """Of one step, all ranks."""
    model_flops: float
    """Of one step on one rank, without recomputation."""
    peak_flops: float
    floor_s: float = 0.0
    """Time of the host, below which no step comes."""
    derived_from: str | None = None
    """The card its rate was derived from, where nobody has measured this one."""
    network_gb_s: float | None = None
    """What each machine has to the others, one way; none: the ranks are all on one."""
    is_network_said: bool = False
    """Whether somebody has said so, and it is not what is usual."""

    @property
    def step_s(self) -> float:
        """Seconds of a step."""
        return max(max(self.math_s + self.traffic_s, self.launch_s) + self.update_s + self.exposed_s, self.floor_s)

    @property
    def origin(self) -> str:
        """Message code of what it is based on: this card's rates, another's, or, of a small model, the host's least."""
        if self.step_s <= self.floor_s:
            return "plan/from-floor"
        return "plan/from-derived" if self.derived_from else "plan/from-roofline"

    @property
    def samples_s(self) -> float:
        """Samples per second, all ranks."""
        return self.samples / self.step_s

    @property
    def mfu(self) -> float:
        """Share of the card's peak that the model's own arithmetic uses."""
        return self.model_flops / self.step_s / self.peak_flops


def number_of(precision: str, card: Card | None) -> Number:
    """Return how a card computes the products of a precision (`bf16`, `fp16`, `fp32`, …)."""
    if precision in ("fp32", "fp8"):
        return "fp32" if precision == "fp32" else "fp8"
    return "emulated" if precision.startswith("bf16") and card is not None and not card.has_bf16 else "half"


def matmul_rate(card: Card, number: Number, width: float) -> float:
    """Return the FLOP/s that the matrix products of a training step of a width reach."""
    share = max(SUSTAINED[card.generation], 0.0 if card.is_power_limited else UNLIMITED_SHARE)
    return (
        card.gemm(number) * share * (SUSTAINED_FP8 if number == "fp8" else 1.0) * width / (width + HALF_WIDTH[number])
    )


def attention_rate(shape: Decoder, work: Work, card: Card, number: Number) -> float:
    """Return the FLOP/s that attention reaches, by the length of the rows and the width of the heads."""
    rate = card.gemm("half" if number == "fp8" else number)
    if work.older_attention or not work.flash:
        return rate * PLAIN_ATTENTION.get(card.generation, PLAIN)
    length, head = work.attended or work.seq_len, shape.q_width / shape.heads
    usual = ATTENTION[card.generation]
    share = NEW_ATTENTION.get(card.generation, usual) if work.newer_attention else usual
    share = max(share, 0.0 if card.is_power_limited else UNLIMITED_ATTENTION)
    return rate * share * length / (length + HALF_LENGTH) * head / (head + HALF_HEAD)


def time_decoder(
    shape: Decoder,
    work: Work,
    card: Card,
    *,
    ranks: int = 1,
    number: Number = "half",
    params: float | None = None,
    predicted: float = 1.0,
) -> SpeedForecast:
    """Return the time of one optimizer step of a decoder or encoder.

    Args:
        predicted: share of the tokens that get logits (0.15 for masked language models).
    """
    weights = params if params is not None else shape.params
    head = 2.0 * shape.vocab * shape.hidden * predicted
    linear = 2.0 * shape.layers * shape.used_params + head
    attention = shape.layers * (block_flops(shape, work.attended or work.seq_len) - 2.0 * shape.used_params)
    passes = 3.0 if work.adapter is None else 2.05
    again = AGAIN[work.recompute]
    # Tensor ranks cut one of the three sides of every product.
    rate = matmul_rate(card, number, shape.hidden / work.tensor ** (1 / 3))
    soft = attention_rate(shape, work, card, number)
    tokens, share = work.tokens, work.tensor * work.pipeline
    product_s = tokens * ((passes + again) * linear / rate + (3.5 + again) * attention / soft) / share
    kernels = shape.layers * (KERNELS + _adapter_kernels(work)) * (1 + again / 2) * (0.35 if work.compiled else 1.0)
    traffic_s = _moved(shape, work, predicted) / share / (card.bandwidth_gb_s * 1e9 * BANDWIDTH)
    trained = weights if work.adapter is None else work.adapter.params
    return _finish(
        work,
        card,
        math_s=product_s,
        traffic_s=traffic_s,
        launch_s=kernels * LAUNCH_S + (shape.layers * (2 + again) * ZERO3_HOST_S if work.live_params else 0.0),
        weights=weights,
        trained=trained,
        ranks=ranks,
        model_flops=tokens * (min(passes, 3.0) * linear + 3.0 * attention) / share,
        peak=card.peak("half" if number == "fp8" else number),
        exchange_s=_exchange(shape, work, card) * (2 + again),
    )


def _moved(shape: Decoder, work: Work, predicted: float) -> float:
    """Return the bytes that cross the memory bus in one micro-batch, beside what the products themselves read."""
    again, tokens = AGAIN[work.recompute], work.tokens
    whole = replace(work, compiled=False, flash=True, tensor=1, adapter=None)
    kept = shape.layers * sum(size for _, size in keep_in_block(shape, whole))
    moved = tokens * kept * (TRAFFIC_COMPILED if work.compiled else TRAFFIC) * (1 + again / 2)
    moved += tokens * shape.vocab * predicted * (4.0 if work.compiled else 12.0)
    if not work.flash:
        moved += tokens * shape.layers * shape.heads * work.seq_len * work.compute_bytes * TRAFFIC_SCORES
    if work.adapter is not None:
        channels = count_lora(shape, 1, work.adapter.inputs)
        forward, backward = ADAPTER_CAST if work.adapter.cast_bytes else ADAPTER_PLAIN
        moved += tokens * channels * (forward * (1 + again) + backward) * (0.5 if work.compiled else 1.0)
        if work.frozen_bytes is not None and work.frozen_bytes < work.compute_bytes:
            unpacked = shape.layers * shape.block_params * (2 + again)
            moved += unpacked * (UNPACK_COMPILED if work.compiled else UNPACK)
    return moved


def _adapter_kernels(work: Work) -> float:
    if work.adapter is None:
        return 0.0
    packed = PACKED_KERNELS * 7 if work.frozen_bytes is not None else 0.0
    return ADAPTER_KERNELS * len(work.adapter.inputs) + packed


def _exchange(shape: Decoder, work: Work, card: Card) -> float:
    """Return the seconds one pass waits while tensor ranks put their parts of the stream together, in all blocks.

    Attention and MLP each gather their input and scatter their output, or sum it up, which takes as long.
    """
    if work.tensor == 1:
        return 0.0
    stream = work.tokens * shape.hidden * work.compute_bytes * (work.tensor - 1) / work.tensor
    blocks = shape.layers / work.pipeline
    return 4 * blocks * stream / link_rate(card, work.tensor) * (ASYNC_TENSOR if work.async_tensor else 1.0)


def time_convnet(tape: Tape, work: Work, card: Card, *, ranks: int = 1, number: Number = "half") -> SpeedForecast:
    """Return the time of one optimizer step of the network on a tape."""
    if number == "fp32" and card.tflops_tf32:
        number = "tf32"  # PyTorch lets cuDNN use it for convolutions unless it is told not to
    flops = 3.0 * tape.flops * work.micro_batch
    moved = TRAFFIC_CONV * tape.kept * work.micro_batch * work.compute_bytes
    return _finish(
        work,
        card,
        math_s=flops / (card.gemm(number) * CONV_FORMATS.get(number, CONV.get(card.generation, 0.55))),
        traffic_s=moved / (card.bandwidth_gb_s * 1e9 * BANDWIDTH),
        launch_s=0.0,
        weights=tape.params,
        trained=tape.trained,
        ranks=ranks,
        model_flops=flops,
        peak=card.peak(number),
    )


def time_traced(
    card: Card,
    *,
    number: Number,
    flops: float,
    moved: float,
    update: float,
    weights: float,
    trained: float,
    plan: tuple[int, int, int, bool],
    kernels: float = 0.0,
) -> SpeedForecast:
    """Return the time of one optimizer step from the arithmetic and traffic a trace has counted.

    Args:
        kernels: launched for one micro-batch; none: launching is hidden.
        weights: their bytes.
        trained: bytes of those that get gradients.
        plan: micro-batch, accumulation, ranks, and whether weights are sharded.
    """
    micro_batch, accumulation, ranks, sharded = plan
    shards = ranks if sharded else 1
    work = Work(
        micro_batch=micro_batch,
        accumulation=accumulation,
        compute_bytes=4 if number == "fp32" else 2,
        shard_weights=shards,
        shard_grads=shards,
        shard_states=shards,
    )
    speed = card.bandwidth_gb_s * 1e9 * BANDWIDTH
    found = _finish(
        work,
        card,
        math_s=flops / matmul_rate(card, number, _TRACED_WIDTH),
        traffic_s=moved / speed,
        launch_s=kernels * LAUNCH_S,
        weights=weights / 4,
        trained=trained / 4,
        ranks=ranks,
        model_flops=flops,
        peak=card.peak(number),
    )
    return replace(found, update_s=update / shards / speed)


def _finish(
    work: Work,
    card: Card,
    *,
    math_s: float,
    traffic_s: float,
    launch_s: float,
    weights: float,
    trained: float,
    ranks: int,
    model_flops: float,
    peak: float,
    exchange_s: float = 0.0,
) -> SpeedForecast:
    """Return the whole step: micro-batches, the update, and the communication that stays visible."""
    steps = work.accumulation
    slower = lost_to_others(ranks)
    math_s, traffic_s, launch_s = math_s * slower, traffic_s * slower, launch_s * slower
    bytes_updated = trained * (2 * work.weight_bytes + work.grad_bytes + 2 * (work.state_bytes + work.master_bytes))
    update = bytes_updated / max(work.shard_states, work.shard_weights) / (card.bandwidth_gb_s * 1e9 * BANDWIDTH)
    if work.host_states:
        on_host = bytes_updated / max(work.shard_states, work.shard_weights) * min(ranks, card.node)
        update = on_host / (HOST_GB_S * 1e9)
    talk, hidden_each = _talk(work, card, weights, trained, ranks)
    backward = max(math_s + traffic_s, launch_s) * (1.0 if hidden_each else 2 / 3) * OVERLAP
    exposed = max(0.0, talk - backward) * (steps if hidden_each else 1) + 0.03 * talk
    exposed += exchange_s * steps
    return SpeedForecast(
        math_s=math_s * steps,
        traffic_s=traffic_s * steps,
        launch_s=launch_s * steps,
        update_s=update,
        exposed_s=exposed,
        samples=work.micro_batch * steps * max(1, ranks // (work.tensor * work.pipeline)),
        model_flops=model_flops * steps,
        peak_flops=peak,
        floor_s=HOST_STEP_S + HOST_PASS_S * steps,
        derived_from=card.derived_from,
        network_gb_s=network_rate(card) if ranks > card.node else None,
        is_network_said=card.network_gb_s is not None,
    )


def lost_to_others(ranks: int) -> float:
    """Return by what a step is longer because there are other ranks, communication apart."""
    return 1 + REPLICA + STRAGGLE * math.log2(ranks) if ranks > 1 else 1.0


def link_rate(card: Card, ranks: int) -> float:
    """Return bytes a second, one way, that a collective reaches between so many ranks."""
    if card.link_gb_s and not (card.has_bridge and ranks > 2):
        near = card.link_gb_s / 2 * LINK * 1e9
    else:
        near = card.pcie_gb_s * PCIE * (1.0 if card.p2p else NO_P2P) * 1e9
    if ranks <= card.node:
        return near
    # As many rings as adapters run at once, each over another one, so a collective has all of them.
    return min(near, network_rate(card) * LINK * 1e9)


def network_rate(card: Card) -> float:
    """Return the gigabytes per second, one way, of a machine to the others: as said, or as usual for such cards."""
    if card.network_gb_s is not None:
        return card.network_gb_s
    usual = NETWORK_GB_S.get(card.generation, ADAPTER_GB_S)  # of eight cards; half a machine has half the adapters
    return max(ADAPTER_GB_S, usual * min(1.0, card.node / NODE))


def _talk(work: Work, card: Card, weights: float, trained: float, ranks: int) -> tuple[float, bool]:
    """Return seconds of communication, of a micro-batch (sharded weights) or of the step, and which of the two."""
    data = max(1, ranks // (work.tensor * work.pipeline))
    if data == 1:
        return 0.0, False
    turn = (data - 1) / data / link_rate(card, ranks)
    if work.shard_weights > 1:
        gathered = 2 * weights * work.compute_bytes + trained * work.grad_bytes
        return gathered * turn, True
    return 2 * trained * work.grad_bytes * turn, False


def scale_step(step_s: float, card: Card, *, ranks: int, trained: float, grad_bytes: float = 4.0) -> float:
    """Return the seconds of a step on so many replicas, from the seconds on one, each with the same micro-batches.

    Gradients are summed behind backward; what does not fit behind it, and the wait for the slowest rank, is added.
    """
    if ranks == 1:
        return step_s
    talk = 2 * trained * grad_bytes * (ranks - 1) / ranks / link_rate(card, ranks)
    exposed = max(0.0, talk - step_s * 2 / 3 * OVERLAP) + 0.03 * talk
    return step_s * lost_to_others(ranks) + exposed
