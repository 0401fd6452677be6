"""What a forecast is asked about: how one training step is done, beside the shape of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Recompute = Literal["none", "selective", "full", "offload"]
"""Activations kept for backward: all, matrix products only, one a block, or none (they go to the host)."""
Loss = Literal["fused", "whole", "chunked", "cut"]
"""How logits become a loss: inside a compiled graph, all at once in fp32, a chunk at a time, or so that they never
exist together (Liger's linear cross entropy, cut cross entropy)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """Small trained weights beside frozen ones (LoRA and its relatives)."""

    params: int
    """Trained weights."""
    inputs: tuple[str, ...] = ("q", "v")
    """Linear layers that have one: q, k, v, o, gate, up, down; their inputs are kept for backward."""
    dropout: bool = True
    """A dropout before the adapter keeps a second copy of the input and a mask."""
    scales_outputs: bool = False
    """Each linear's output is scaled by a trained vector, so it is kept too (adapter v2, IA3)."""
    cast_bytes: float | None = None
    """Of one channel of an input that is cast to the adapter's own type, for each linear again; none: not cast."""
    outputs: tuple[str, ...] = ()
    """Linear layers whose output the method keeps beside what the model keeps."""
    output_bytes: float = 0.0
    """Of one channel of such an output."""
    changed: tuple[str, ...] = ()
    """Linear layers for which it makes a change as large as their matrix."""
    change_bytes: float = 0.0
    """Of one weight of such a change, kept from forward to backward."""
    norms: bool = False
    """The gains of the norms are trained, so what they scale is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One rank's share of a training step."""

    micro_batch: int
    seq_len: int = 1
    attended: int | None = None
    """Tokens one token looks back on, where the sequence is cut over ranks; none: `seq_len`."""
    accumulation: int = 1
    weight_bytes: float = 4.0
    """Of one stored weight."""
    compute_bytes: float = 2.0
    """Of one activation."""
    stream_bytes: float | None = None
    """Of one element of the residual stream, where autocast leaves it wider than `compute_bytes`."""
    mlp_bytes: float | None = None
    """Of one activation inside an MLP, where its linears answer in the type of their input; none: `compute_bytes`."""
    master_bytes: float = 0.0
    """Of a second, finer copy of a weight kept by the optimizer."""
    grad_bytes: float = 4.0
    state_bytes: float = 8.0
    """Optimizer state of one weight: 8 for Adam in fp32, 4 for momentum or Adam in bf16, 2 for 8-bit Adam."""
    step_bytes: float = 0.0
    """Of one weight whose state a rank keeps, for the length of the update only: the root of the second moments that
    foreach Adam writes out, or DeepSpeed's gradients in fp32."""
    step_params: float | None = None
    """Weights that the update takes at a time; none: all."""
    bucket_params: float = 0.0
    """Weights whose gradients, or weights, DeepSpeed's communication buffers hold at once."""
    live_params: float | None = None
    """Weights that sharded layers keep together at a time (DeepSpeed's ZeRO-3); none: two blocks and the embeddings."""
    frozen_bytes: float | None = None
    """Of one frozen weight, when it is stored otherwise: 0.5625 for nf4."""
    table_bytes: float | None = None
    """Of one frozen weight of the embeddings beside packed linears; none: `compute_bytes`."""
    adapter_bytes: float | None = None
    """Of one weight of an adapter; none: `weight_bytes`."""
    packed_inputs: bool = False
    """Products with packed frozen weights keep their input, though nothing needs it (bitsandbytes of 2024)."""
    cast_weights: bool = False
    """Autocast keeps a compute-type copy of the weights of the running forward."""
    adapter: Adapter | None = None
    """None: every weight is trained."""
    shard_weights: int = 1
    shard_grads: int = 1
    shard_states: int = 1
    """Ranks over which each is cut (ZeRO-1: states; ZeRO-2: and gradients; ZeRO-3 and FSDP: all)."""
    bucket_bytes: float = 0.0
    """Second copy of a gradient in DDP's buckets; 0 where gradients are views of them."""
    tensor: int = 1
    pipeline: int = 1
    """Ranks that share the matrices of a layer, and the layers."""
    expert_parallel: int = 1
    """Ranks over which the experts of a block are dealt out."""
    expert_tensor: int | None = None
    """Ranks that share the matrices of an expert; none: as many as those of a layer."""
    async_tensor: bool = False
    """Tensor ranks exchange piece by piece behind the products."""
    in_flight: float = 1.0
    """Micro-batches whose activations a pipeline stage holds at once."""
    sequence_parallel: bool = False
    """Norms and the residual stream are cut over the tensor ranks as well."""
    keeps_gathered: bool = False
    """Linears keep the whole sequence they gathered, not their own part of it (DTensor; Megatron gathers again)."""
    keeps_stream: bool = False
    """Backward keeps one more stream of every block while it recomputes them."""
    recompute: Recompute = "none"
    compiled: bool = False
    loss: Loss = "whole"
    narrow_loss: bool = False
    """No autocast casts the logits to fp32, so a model that does not either has its loss in 16 bits."""
    logit_tokens: int | None = None
    """Tokens whose logits exist at one time, where the loss is cut and recomputed; none: all."""
    logit_copies: float = 0.0
    """Bytes of one logit beside what its loss takes: gradients in 8 bits, a second fp32 copy."""
    holds_logits: bool = False
    """The loop holds what the model returned, its logits too, while blocks are recomputed."""
    average_bytes: float = 0.0
    """Of one weight in a moving average."""
    flash: bool = True
    """Attention without a matrix of lengths squared."""
    dropout: bool = False
    """What attention and MLP add to the stream goes through a dropout, whose masks are kept."""
    newer_attention: bool = False
    """Its kernels were written for this generation of cards (flash attention 3 on Hopper, 4 on Blackwell)."""
    older_attention: bool = False
    """Its kernels were written for the generation of cards before (flash attention 2 on Hopper)."""
    fused_kernels: bool = False
    """Norms and activations are single kernels that keep their input only (Transformer Engine, Megatron)."""
    step_in_backward: bool = False
    """Each gradient is used and freed as it appears."""
    paged_states: bool = False
    """Optimizer state is unified memory, which needs no room on the GPU."""
    host_states: bool = False
    """Optimizer state lives on the host."""
    host_grads: bool = False
    """Gradients go to the host as they appear."""

    @property
    def tokens(self) -> int:
        """Tokens of one micro-batch."""
        return self.micro_batch * self.seq_len
