"""Memory of one rank: weights, gradients, optimizer state, activations and logits, and the moment they add up most.

Three figures come out, as there are three on a GPU: what tensors hold (`allocated`), what the caching allocator holds
for them (`reserved`), and what the driver shows (`used`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from headway.planner.models.decoder import (
    Decoder,
    backward_bytes,
    changed_bytes,
    keep_in_block,
    logit_bytes,
    logit_copies,
)
from headway.planner.step import Work

Verdict = Literal["fits", "tight", "will-not-fit"]

FRAGMENTATION = 1.06
"""Reserved over allocated (measured rows with steps of one shape: 1.02 to 1.10)."""
CONTEXT_BYTES = 0.6e9
"""What a process takes before its first tensor: context, kernels, cuBLAS and cuDNN handles."""
COMMUNICATION_BYTES = 0.4e9
"""Buffers of NCCL, when there is more than one rank."""
WORKSPACE_BYTES = 70e6
"""cuBLAS workspaces, which are tensors of the caching allocator."""
TIGHT = 0.92
"""Share of a card above which a forecast that fits is called tight: the spread of our own errors."""
REFUSED = 1.04
"""Share of a card that tensors must exceed before a run is refused: the median of our own errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Reserved over allocated, by what kind of tensor holds it.

    The caching allocator gives every tensor of some gigabytes a segment of its own, and does not join segments: logits
    in 16 bits, in fp32, shifted and as gradients leave segments behind that no other of them fits into. What stays from
    step to step, and the many equal tensors of blocks, fit almost without a gap.
    """

    fixed: float = FRAGMENTATION
    activations: float = FRAGMENTATION
    logits: float = FRAGMENTATION

    def reserve(self, parts: Mapping[str, float]) -> float:
        """Return the bytes the allocator holds for these tensors."""
        own = {"activations": self.activations, "logits-and-loss": self.logits}
        return sum(size * own.get(name, self.fixed) for name, size in parts.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryForecast:
    """Who holds one rank's memory at its peak."""

    parts: Mapping[str, float]
    """Holder to bytes; they add up to `allocated`."""
    moment: str
    """When the peak is: `load`, `backward` (its start), `step` (the optimizer's) or `validation`."""
    ranks: int = 1
    spread: Spread = Spread()
    context_bytes: float = CONTEXT_BYTES
    others: tuple[Mapping[str, float], ...] = ()
    """Holders at the step's other moments, of which one can leave more segments behind than the peak."""
    notes: tuple[str, ...] = field(default=())

    @property
    def allocated_bytes(self) -> float:
        """What tensors hold."""
        return sum(self.parts.values())

    @property
    def reserved_bytes(self) -> float:
        """What the caching allocator holds."""
        return max(self.spread.reserve(parts) for parts in (self.parts, *self.others))

    @property
    def used_bytes(self) -> float:
        """What the driver shows."""
        more = COMMUNICATION_BYTES if self.ranks > 1 else 0.0
        return self.reserved_bytes + self.context_bytes + more

    @property
    def least_bytes(self) -> float:
        """What a rank cannot do without: its tensors and the context, nothing for fragments."""
        return min(self.used_bytes, self.allocated_bytes + CONTEXT_BYTES)

    def judge(self, device_bytes: float) -> Verdict:
        """Say whether a device of this size is enough."""
        if self.used_bytes <= TIGHT * device_bytes:
            return "fits"
        # Reserved memory can be given back when it gets short; tensors cannot.
        return "tight" if self.least_bytes <= REFUSED * device_bytes else "will-not-fit"


def weigh_decoder(shape: Decoder, work: Work, *, params: int | None = None, ranks: int = 1) -> MemoryForecast:
    """Return the peak of one rank that trains a decoder.

    Args:
        params: all weights, where somebody has counted them; none: from the shape.
    """
    held, trained = _count_weights(shape, work, params)
    each = logit_bytes(shape, work) + logit_copies(shape, work) * shape.vocab / work.tensor
    logits = each * min(work.tokens, work.logit_tokens or work.tokens)
    moments = [
        peak_of(
            replace(work, cast_weights=work.cast_weights and "logits-and-loss" in kept),
            weights=held,
            trained=trained,
            kept=kept,
            gathered=_gathered(shape, work),
            with_states=_count_states(shape, work, trained),
            ranks=ranks,
        )
        for kept in _kept(shape, work, logits)
    ]
    peak = max(moments, key=lambda one: one.allocated_bytes)
    return replace(peak, others=tuple(parts for one in moments for parts in (one.parts, *one.others)))


def _kept(shape: Decoder, work: Work, logits: float) -> Iterator[dict[str, float]]:
    """Yield activations and logits at the moments that can be the peak of backward: its start, and a block's own."""
    block = sum(size for _, size in keep_in_block(shape, work)) * work.tokens
    blocks = shape.layers / work.pipeline
    stream = shape.hidden * work.compute_bytes * work.tokens * 2
    changed = changed_bytes(shape, work) * blocks
    kept = _kept_blocks(shape, work, block, blocks) * work.in_flight + changed + stream
    if work.recompute not in ("full", "offload"):
        yield {"activations": kept, "logits-and-loss": logits}
        return
    # A recomputed block is beside the gradients of its widest part.
    again = block + backward_bytes(shape, work) * work.tokens
    if work.keeps_stream:
        again += shape.hidden * work.compute_bytes * work.tokens * blocks
    if work.holds_logits:
        yield {"activations": kept + again, "logits-and-loss": logits}
    elif work.adapter is None and not work.logit_copies and work.logit_tokens is None and work.loss != "cut":
        # Published peaks of plain loops that train every weight show both: gradients of the head and of the block,
        # whole before they are added or cut, take the place the logits leave.
        yield {"activations": kept + block, "logits-and-loss": logits}
    else:
        # It exists when the logits are gone, and with them autocast's copies of the weights.
        yield {"activations": kept, "logits-and-loss": logits}
        yield {"activations": kept + again}


def peak_of(
    work: Work,
    *,
    weights: float,
    trained: float,
    kept: Mapping[str, float],
    gathered: float = 0.0,
    with_states: float | None = None,
    ranks: int = 1,
) -> MemoryForecast:
    """Return the larger of the two moments that can be the peak: the start of backward and the optimizer's step.

    Args:
        weights: bytes of the stored weights, uncut.
        trained: number of trained weights on this rank's share of the model.
        kept: activations by name, in bytes.
        gathered: bytes of full weights brought together for a block and the one before it.
        with_states: number of weights whose optimizer state this rank keeps; none: of `trained`, as it is cut.
    """
    grads = trained * work.grad_bytes / work.shard_grads
    buckets = trained * work.bucket_bytes
    stated = trained / work.shard_states if with_states is None else with_states
    states = 0.0 if work.host_states or work.paged_states else stated * (work.state_bytes + work.master_bytes)
    always = {
        "weights": weights / work.shard_weights,
        "communication-buffers": work.bucket_params * work.grad_bytes,
        "optimizer-state": states,
        "moving-average": trained * work.average_bytes / work.shard_states,
        "workspace": WORKSPACE_BYTES,
    }
    # ZeRO-3 lets go of its live weights when others need the room; FSDP shards every block again behind its backward.
    whole = {"gathered-weights": gathered}
    casts = {"weights-in-compute-type": weights / work.weight_bytes * work.compute_bytes} if work.cast_weights else {}
    stay = grads + buckets if work.accumulation > 1 or buckets else 0.0
    if work.host_grads:
        grads = stay = 0.0
    backward = {**always, **whole, **casts, "gradients": 0.0 if work.step_in_backward else stay, **kept}
    step = {
        **always,
        "gradients": 0.0 if work.step_in_backward else grads + buckets,
        "temporaries": 0.0
        if work.step_in_backward or work.host_states
        else min(stated, work.step_params or stated) * work.step_bytes,
    }
    moments = sorted((("step", step), ("backward", backward)), key=lambda one: -sum(one[1].values()))
    (moment, parts), (_, other) = moments
    return MemoryForecast(
        parts={name: size for name, size in parts.items() if size}, moment=moment, ranks=ranks, others=(other,)
    )


def weigh_loading(weights: float, *, ranks: int, whole: float) -> MemoryForecast:
    """Return the peak of a start that puts all weights on every GPU before it cuts them.

    Args:
        whole: bytes of the largest unit that is whole while it is cut (both embeddings).
    """
    parts = {"weights": weights, "shard": weights / ranks, "gathered-weights": whole, "workspace": WORKSPACE_BYTES}
    return MemoryForecast(parts=parts, moment="load", ranks=ranks)


def weigh_validation(shape: Decoder, work: Work, *, tokens: int, ranks: int = 1) -> MemoryForecast:
    """Return the peak of a validation pass over more tokens than a training step has.

    Nothing is kept for backward and gradients are gone, but the logits of all tokens exist at once.
    """
    held, trained = _count_weights(shape, work, None)
    parts = {
        "weights": held / work.shard_weights,
        "optimizer-state": trained * (work.state_bytes + work.master_bytes) / work.shard_states,
        "activations": 2 * shape.hidden * work.compute_bytes * tokens,
        "logits-and-loss": shape.vocab * work.compute_bytes * tokens,
        "workspace": WORKSPACE_BYTES,
    }
    return MemoryForecast(parts=parts, moment="validation", ranks=ranks)


def add_held(forecast: MemoryForecast, name: str, size: float) -> MemoryForecast:
    """Return the forecast with one more holder, there at every moment (a buffer, a table)."""
    return replace(forecast, parts={**forecast.parts, name: forecast.parts.get(name, 0.0) + size})


def _count_weights(shape: Decoder, work: Work, params: int | None) -> tuple[float, float]:
    """Return bytes of stored weights and the number of trained ones, on one tensor and pipeline rank, uncut by data."""
    whole = float(params if params is not None else shape.params)
    if work.pipeline > 1:  # the last stage: its blocks and one embedding
        whole = shape.layers * shape.block_params / work.pipeline + shape.vocab * shape.hidden
    experts = _count_experts(shape, work)
    whole = (whole - experts * work.expert_parallel * _expert_tensor(work)) / work.tensor + experts
    if work.adapter is None:
        return whole * work.weight_bytes, whole
    # Embeddings are looked up, not multiplied: they stay in 16 bits when linears are packed into 4.
    table = shape.vocab * shape.hidden * (1 if shape.tied else 2) / work.tensor
    packed = work.frozen_bytes if work.frozen_bytes is not None else work.weight_bytes
    frozen = (whole - table) * packed + table * max(packed, work.table_bytes or work.compute_bytes)
    own = work.weight_bytes if work.adapter_bytes is None else work.adapter_bytes
    return frozen + work.adapter.params * own, work.adapter.params


def _expert_tensor(work: Work) -> int:
    return work.expert_tensor or work.tensor


def _count_experts(shape: Decoder, work: Work) -> float:
    """Return the number of experts' weights on one rank, uncut by data."""
    every = shape.layers / work.pipeline * shape.experts * shape.mlp_params
    return every / work.expert_parallel / _expert_tensor(work)


def _count_states(shape: Decoder, work: Work, trained: float) -> float:
    """Return the number of weights whose states one rank keeps; fewer ranks share an expert than a layer."""
    experts = _count_experts(shape, work) if work.adapter is None else 0.0
    same = max(1, work.shard_states * work.tensor // (work.expert_parallel * _expert_tensor(work)))
    return (trained - experts) / work.shard_states + experts / (same if work.shard_states > 1 else 1)


def _kept_blocks(shape: Decoder, work: Work, block: float, blocks: float) -> float:
    """Return the bytes of activations over all blocks at the start of backward, without a block that is recomputed."""
    # Autocast leaves the residual stream in fp32, and a checkpoint keeps it as it comes.
    wide = work.stream_bytes or work.compute_bytes
    stream = shape.hidden * wide * work.tokens / (work.tensor if work.sequence_parallel else 1)
    if work.recompute == "none":
        return block * blocks
    if work.recompute == "offload":
        return 2 * stream
    if work.recompute == "full":
        return stream * blocks
    # Selective (torchtitan's "op"): attention's own and every second matrix product stay.
    one = work.compute_bytes * work.tokens
    whole = shape.hidden * 2 / (work.tensor if work.sequence_parallel else 1)
    products = ((shape.q_width * 2 + shape.kv_width + shape.ffn) / work.tensor + whole) * one
    return (products + stream) * blocks + block


def _gathered(shape: Decoder, work: Work) -> float:
    """Return the bytes of whole weights alive at a time under FSDP: this block, the next, and the embeddings."""
    if work.shard_weights == 1:
        return 0.0
    if work.live_params is not None:
        # A weight stays while it is wanted again within so many others: around the turn from forward to backward, where
        # each block is passed twice more, that is the head, its last block and a third of that distance.
        near = shape.vocab * shape.hidden + shape.block_params + work.live_params / 3
        return min(near, shape.params) / work.tensor * work.compute_bytes
    kind = work.frozen_bytes if work.adapter and work.frozen_bytes else work.compute_bytes
    return (2 * shape.block_params + shape.embedding_params) / work.tensor * kind
