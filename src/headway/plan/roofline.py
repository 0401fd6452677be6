"""Time of a step before anything has run: arithmetic, memory traffic, launches and communication by the data sheet.

Efficiencies are shares of a data sheet's peak that training reaches, one for each generation, calibrated on published
runs (docs/decisions/0016-memory-forecast.md). A measured step always overrules them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from headway.plan.convnet import Tape
from headway.plan.decoder import Decoder, block_flops, keep_in_block
from headway.plan.work import Work

Number = Literal["fp32", "tf32", "half", "fp8"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a step needs to know of a GPU."""

    name: str
    capability: tuple[int, int] | None
    memory_bytes: float
    tflops_half: float
    bandwidth_gb_s: float
    tflops_tf32: float | None = None
    tflops_fp32: float | None = None
    tflops_fp8: float | None = None
    link_gb_s: float | None = None
    """Both directions of NVLink or its like; none: PCIe alone."""
    pcie_gb_s: float = 16.0
    p2p: bool = True
    power_w: float | None = None

    def peak(self, number: Number) -> float:
        """Return FLOP/s of matrix products in a number format; what the card lacks runs in the next wider one."""
        if number == "fp8" and self.tflops_fp8:
            return self.tflops_fp8 * 1e12
        if number in ("fp8", "half"):
            return self.tflops_half * 1e12
        if number == "tf32" and self.tflops_tf32:
            return self.tflops_tf32 * 1e12
        return (self.tflops_fp32 or self.tflops_half / 8) * 1e12

    @property
    def generation(self) -> str:
        """Return the generation whose efficiencies apply."""
        major, minor = self.capability or (8, 0)
        if major < 8:
            return "volta"
        if (major, minor) == (8, 0):
            return "ampere"
        return {9: "hopper", 10: "blackwell"}.get(major, "consumer")


MATMUL = {"volta": 0.75, "ampere": 0.84, "consumer": 0.95, "hopper": 0.66, "blackwell": 0.25}
"""Share of the peak that matrix products of an endless width reach."""
HALF_WIDTH = {"fp32": 0, "tf32": 270, "half": 270, "fp8": 1000}
"""Width at which they reach half of that: small models leave the units waiting, and casts to 8 bits weigh more."""
FORMATS = {"fp32": 1.15, "tf32": 1.0, "half": 1.0, "fp8": 0.85}
"""The same by number format, against 16 bits."""
ATTENTION = {"volta": 0.3, "ampere": 0.34, "consumer": 0.4, "hopper": 0.34, "blackwell": 0.2}
"""Share of the peak that flash attention reaches."""
OLDER_ATTENTION = {"hopper": 0.2}
"""The same for kernels written for the generation before, which leave its new units idle."""
CONV_SHARE = {"fp32": 0.9, "tf32": 0.5, "half": 0.45, "fp8": 0.45}
CONV = {"consumer": 0.8}
"""Share of the peak that convolutions reach, by number format; consumer cards add 16-bit products in fp32 at half their
rate, and reach more of the rest."""
TRAFFIC_CONV = 8.0
"""Times a kept byte of a convolution crosses the memory bus: its norm and activation read and write it again."""
BANDWIDTH = 0.8
"""Share of the memory bandwidth that streaming kernels reach."""
TRAFFIC, TRAFFIC_COMPILED = 5.5, 0.6
"""Times a kept byte crosses the memory bus in forward and backward, eager and compiled."""
TRAFFIC_SCORES = 12.0
"""Times an attention matrix crosses it where it is written out: scores, mask, softmax and dropout, forward and back."""
FULL_POWER_W = {"hopper": 700.0}
"""Board power the shares were calibrated at; a card with less slows down by the root of the ratio."""
_TRACED_WIDTH = 1280
"""Width that stands for all products of a traced model, whose layers differ."""
LAUNCH_S = 6e-6
"""One kernel from the host."""
KERNELS = 110
"""Kernels of one block, forward and backward, eager; a third of it when compiled."""
LINK, PCIE, NO_P2P = 0.7, 0.6, 0.5
"""Shares of a link's one-way rate that collectives reach; without peer access everything crosses the host."""
NETWORK_GB_S = {"volta": 12.5, "ampere": 200.0, "hopper": 400.0, "blackwell": 400.0}
"""Rate a machine of eight has to the others, one way: one adapter of 100 Gb/s, eight of 200 and of 400."""
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

    @property
    def step_s(self) -> float:
        """Seconds of a step."""
        return max(self.math_s + self.traffic_s, self.launch_s) + self.update_s + self.exposed_s

    @property
    def samples_s(self) -> float:
        """Samples a second, all ranks."""
        return self.samples / self.step_s

    @property
    def mfu(self) -> float:
        """Share of the card's peak that the model's own arithmetic uses."""
        return self.model_flops / self.step_s / self.peak_flops


def _power(card: Card) -> float:
    full = FULL_POWER_W.get(card.generation)
    return min(1.0, (card.power_w / full) ** 0.5) if full and card.power_w else 1.0


def matmul_rate(card: Card, number: Number, width: float) -> float:
    """Return the FLOP/s that matrix products of a width reach."""
    share = MATMUL[card.generation] * FORMATS[number] * width / (width + HALF_WIDTH[number])
    return card.peak(number) * share * _power(card)


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
    again = {"none": 0.0, "selective": 0.25, "full": 1.0, "offload": 1.0}[work.recompute]
    # Tensor ranks cut one of the three sides of every product.
    rate = matmul_rate(card, number, shape.hidden / work.tensor ** (1 / 3))
    reached = ATTENTION | OLDER_ATTENTION if work.older_attention else ATTENTION
    soft = card.peak("half" if number == "fp8" else number) * reached[card.generation] * _power(card)
    tokens, share = work.tokens, work.tensor * work.pipeline
    product_s = tokens * ((passes + again) * linear / rate + (3.5 + again) * attention / soft) / share
    whole = replace(work, compiled=False, flash=True, tensor=1)
    kept = shape.layers * sum(size for _, size in keep_in_block(shape, whole))
    moved = tokens * kept * (TRAFFIC_COMPILED if work.compiled else TRAFFIC) * (1 + again / 2)
    moved += tokens * shape.vocab * predicted * (4.0 if work.compiled else 12.0)
    if not work.flash:
        moved += tokens * shape.layers * shape.heads * work.seq_len * work.compute_bytes * TRAFFIC_SCORES
    kernels = shape.layers * KERNELS * (1 + again / 2) * (0.35 if work.compiled else 1.0)
    traffic_s = moved / share / (card.bandwidth_gb_s * 1e9 * BANDWIDTH)
    trained = weights if work.adapter is None else work.adapter.params
    return _finish(
        work,
        card,
        math_s=product_s,
        traffic_s=traffic_s,
        launch_s=kernels * LAUNCH_S,
        weights=weights,
        trained=trained,
        ranks=ranks,
        model_flops=tokens * (min(passes, 3.0) * linear + 3.0 * attention) / share,
        peak=card.peak("half" if number == "fp8" else number),
        exchange_s=_exchange(shape, work, card) * (2 + again),
    )


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
    flops = 3.0 * tape.flops * work.micro_batch
    moved = TRAFFIC_CONV * tape.kept * work.micro_batch * work.compute_bytes
    return _finish(
        work,
        card,
        math_s=flops / (card.peak(number) * CONV.get(card.generation, CONV_SHARE[number]) * _power(card)),
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
    )


def lost_to_others(ranks: int) -> float:
    """Return by what a step is longer because there are other ranks, communication apart."""
    return 1 + REPLICA + STRAGGLE * math.log2(ranks) if ranks > 1 else 1.0


def link_rate(card: Card, ranks: int) -> float:
    """Return bytes a second, one way, that a collective reaches between so many ranks."""
    if card.link_gb_s:
        near = card.link_gb_s / 2 * LINK * 1e9
    else:
        near = card.pcie_gb_s * PCIE * (1.0 if card.p2p else NO_P2P) * 1e9
    if ranks <= NODE:
        return near
    # As many rings as adapters run at once, each over another one, so a collective has all of them.
    return min(near, NETWORK_GB_S.get(card.generation, 12.5) * LINK * 1e9)


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
