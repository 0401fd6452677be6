"""The decoder family: parameters, kept activations and FLOPs of a GPT or Llama from its shape.

Every term is a tensor somebody can point at in the model's code: what autograd keeps between forward and backward.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from headway.planner.step import Work

_CHUNKS = 8
"""Pieces a chunked loss cuts the tokens into (torchtune's number)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """The shape of a decoder-only transformer."""

    layers: int
    hidden: int
    heads: int
    vocab: int
    ffn: int
    kv_heads: int | None = None
    head_dim: int | None = None
    mlp: Literal["gelu", "relu2", "swiglu"] = "swiglu"
    """Two matrices with a function between, or three with a gate."""
    norm: Literal["rms", "layer"] = "rms"
    """`rms` written out in fp32 keeps an fp32 copy of its input; a layer norm is one kernel."""
    parallel: bool = False
    """Attention and MLP read the same norm (Falcon, Phi, GPT-NeoX)."""
    tied: bool = False
    """Input and output share one embedding."""
    qk_norm: bool = False
    softcap: bool = False
    """Logits go through a tanh, which keeps them once more."""
    one_qkv: bool = False
    """Queries, keys and values come from one matrix: keeping the values keeps all three."""
    rotary: bool = True
    """Queries and keys are turned, which makes copies of them."""
    wide_rotary: bool = False
    """The rotary tables have the residual stream's type, and queries and keys take it on until attention casts them."""
    expand_kv: bool = False
    """Shared key and value heads are copied out to every query head before attention."""
    experts: int = 0
    """MLPs of a block among which each token chooses; 0: there is one, for all."""
    active: int = 1
    """Experts a token goes to."""
    mixed_values: bool = False
    """Values are mixed with embedded ones by trained weights, and so kept before the mixing too."""
    narrow_loss: bool = False
    """Its public code computes the loss in the type of the logits; autocast alone makes that fp32."""
    more_params: int = 0
    """Weights beside the blocks and the two embeddings (value embeddings, position tables)."""

    @property
    def q_width(self) -> int:
        """Channels of the queries."""
        return self.heads * (self.head_dim or self.hidden // self.heads)

    @property
    def kv_width(self) -> int:
        """Channels of the keys."""
        return (self.kv_heads or self.heads) * (self.head_dim or self.hidden // self.heads)

    @property
    def block_params(self) -> int:
        """Weights of one block."""
        attention = self.hidden * (2 * self.q_width + 2 * self.kv_width)
        return attention + self.mlp_params * max(1, self.experts) + self.hidden * self.experts

    @property
    def mlp_params(self) -> int:
        """Weights of one MLP, or of one expert."""
        return self.hidden * self.ffn * (3 if self.mlp == "swiglu" else 2)

    @property
    def used_params(self) -> int:
        """Weights of one block that a token meets."""
        return self.block_params - self.mlp_params * max(0, self.experts - self.active)

    @property
    def embedding_params(self) -> int:
        """Weights of input and output embedding."""
        return self.vocab * self.hidden * (1 if self.tied else 2)

    @property
    def params(self) -> int:
        """All weights."""
        return self.layers * self.block_params + self.embedding_params + self.more_params


def keep_in_block(shape: Decoder, work: Work) -> Iterator[tuple[str, float]]:
    """Yield the tensors of one block that backward needs, in bytes a token, on one tensor rank."""
    ways = work.tensor
    # What every tensor rank holds whole, unless the sequence is cut over them as well.
    stream = shape.hidden / (ways if work.sequence_parallel else 1)
    q, kv, ffn = shape.q_width / ways, shape.kv_width / ways, shape.ffn / ways
    yield from _keep_norms(shape, work, stream)
    yield from _keep_attention(shape, work, q, kv)
    yield from _keep_mlp(shape, work, ffn)
    if work.dropout:
        yield "masks of attention's and MLP's dropout", 2 * stream
    if shape.experts:
        # What goes into the experts and what comes out, in their order: the second for the gates' gradient.
        each = shape.hidden * work.compute_bytes * shape.active
        yield "tokens sorted by expert", 2 * each * (work.expert_tensor or ways) / ways
    if work.adapter is not None:
        yield from _keep_adapter(shape, work, {"stream": stream, "q": q, "kv": kv, "ffn": ffn})


_SIDES = {
    "q": ("stream", "q"),
    "k": ("stream", "kv"),
    "v": ("stream", "kv"),
    "o": ("q", "stream"),
    "gate": ("stream", "ffn"),
    "up": ("stream", "ffn"),
    "down": ("ffn", "stream"),
}
"""What each linear layer of a block reads and writes."""


def _keep_adapter(shape: Decoder, work: Work, width: dict[str, float]) -> Iterator[tuple[str, float]]:
    adapter, one = work.adapter, work.compute_bytes
    assert adapter is not None
    # q, k and v read one tensor, and so do gate and up; what attention keeps anyway is not kept twice.
    for group in (("q", "k", "v"), ("gate", "up"), ("o",), ("down",)):
        wrapped = [name for name in group if name in adapter.inputs]
        if not wrapped:
            continue
        read = width[_SIDES[group[0]][0]]
        if adapter.cast_bytes is not None:
            yield "adapter inputs", read * adapter.cast_bytes * len(wrapped)
        elif adapter.dropout:
            yield "adapter inputs", read * (one + 1) * (1 if shape.one_qkv and group[0] == "q" else len(wrapped))
        elif group[0] != "o":
            yield "adapter inputs", read * one
    yield "adapter outputs", sum(width[_SIDES[name][1]] for name in adapter.outputs) * adapter.output_bytes
    if adapter.norms:
        yield "normed, before the gain", 2 * width["stream"] * one
    if adapter.scales_outputs:
        linears = [name for name in _SIDES if name != "gate" or shape.mlp == "swiglu"]
        yield "scaled outputs", sum(width[_SIDES[name][1]] for name in linears) * one
        yield "norm outputs", 2 * width["stream"] * 4 if shape.norm == "rms" else 2 * width["stream"] * one


def count_lora(shape: Decoder, rank: int, linears: Iterable[str]) -> int:
    """Return the weights of two thin matrices beside each of these linear layers, in all blocks."""
    width = _widths(shape)
    return shape.layers * rank * sum(width[side] for name in linears for side in _SIDES[name])


def _widths(shape: Decoder) -> dict[str, int]:
    return {"stream": shape.hidden, "q": shape.q_width, "kv": shape.kv_width, "ffn": shape.ffn}


def changed_bytes(shape: Decoder, work: Work) -> float:
    """Return the bytes of the changes an adapter makes to whole matrices, of one block."""
    if work.adapter is None:
        return 0.0
    width = _widths(shape)
    sizes = (width[_SIDES[name][0]] * width[_SIDES[name][1]] for name in work.adapter.changed)
    return sum(sizes) * work.adapter.change_bytes


def _frozen(work: Work) -> bool:
    """Whether linears keep no input, as their weights get no gradient."""
    return work.adapter is not None and not work.packed_inputs


def _keep_norms(shape: Decoder, work: Work, stream: float) -> Iterator[tuple[str, float]]:
    norms, one = (1 if shape.parallel else 2), work.compute_bytes
    fused = work.compiled or work.fused_kernels or shape.norm == "layer"
    yield "norm inputs", norms * stream * ((work.stream_bytes or one) if fused else 4)
    if work.adapter is None and not fused:
        yield "normed, before the gain", norms * stream * one
    if not _frozen(work):
        yield "norm outputs", norms * (shape.hidden if work.keeps_gathered else stream) * one
        if (work.stream_bytes or one) > one and not shape.one_qkv and not work.compiled:
            # Autocast remembers casts of weights, not of inputs: queries, keys and values each cast their own.
            yield "casts of keys' and values' input", 2 * stream * one


def _keep_attention(shape: Decoder, work: Work, q: float, kv: float) -> Iterator[tuple[str, float]]:
    one = work.compute_bytes
    seen = q if shape.expand_kv else kv
    yield "queries, keys, values", (q + 2 * seen) * one
    if shape.one_qkv and shape.rotary and not work.compiled:
        # The values are a view of the one matrix product, so its whole result stays beside the rotated copies.
        yield "qkv product", (q + kv) * one
    if shape.qk_norm:
        yield (
            "queries and keys before their norm",
            (q + kv) * ((work.stream_bytes or one) if shape.wide_rotary else one),
        )
    if shape.mixed_values:
        yield "values before the mixing", kv * one
    yield "attention output", q * one
    if not work.flash:
        # scores (softmax output), its mask and what dropout leaves, a row of the sequence for each head.
        yield "attention matrix", shape.heads / work.tensor * work.seq_len * (2 * one + 1)


def _keep_mlp(shape: Decoder, work: Work, ffn: float) -> Iterator[tuple[str, float]]:
    one = (work.mlp_bytes or work.compute_bytes) * (shape.active if shape.experts else 1)
    whole = not _frozen(work)
    if shape.mlp == "swiglu":
        yield "gate and up", 2 * ffn * one
        if not work.compiled and not work.fused_kernels:
            yield "gate after its function", ffn * one
    else:
        yield "up", ffn * one  # of relu squared: after the relu, which is all both functions need
    if whole:
        yield "down's input", ffn * one


def backward_bytes(shape: Decoder, work: Work) -> float:
    """Return the bytes a token takes for gradients inside a block's MLP, its widest part."""
    wide = 3 if shape.mlp == "swiglu" else 2
    return wide * shape.ffn / work.tensor * work.compute_bytes * (shape.active if shape.experts else 1)


def logit_bytes(shape: Decoder, work: Work) -> float:
    """Return the bytes a token takes between the last norm and the loss, at the start of backward."""
    vocab = shape.vocab / work.tensor
    if work.loss == "chunked":
        # Compute-type logits of all chunks; gradient and fp32 copies of one chunk at a time.
        return vocab * (work.compute_bytes * (1 + 1 / _CHUNKS) + (4 if work.compiled else 12) / _CHUNKS)
    if work.loss == "cut":
        # The gradient of the last norm's output; of the logits, a piece that does not grow with the tokens.
        return float(shape.hidden * 4)
    if work.loss == "fused":
        # Compute-type logits, overwritten by their gradient, and what softmax needs of a block in fp32.
        return vocab * (work.compute_bytes + 1)
    if work.fused_kernels:
        # Megatron: bf16 logits, fp32 softmax kept, and its gradient in place.
        return vocab * (work.compute_bytes + 4)
    if work.narrow_loss and shape.narrow_loss:
        # Logits, those shifted by a token, log-softmax and its gradient, all in the compute type.
        return vocab * 4 * work.compute_bytes
    # fp32 copy, log-softmax, its gradient; the compute-type logits are gone by then.
    return vocab * (16 if shape.softcap else 12)


def logit_copies(shape: Decoder, work: Work) -> float:
    """Return the bytes of one logit that somebody holds beside what the loss takes of it."""
    if not shape.narrow_loss or not work.logit_copies:
        return work.logit_copies
    # What is returned, and shifted, stays in the compute type.
    return 0.0 if work.narrow_loss else work.compute_bytes


def block_flops(shape: Decoder, seq_len: int, *, window: int | None = None) -> float:
    """Return forward FLOPs of one token in one block: two for each weight, and causal attention."""
    reach = min(seq_len, window or seq_len)
    return 2.0 * shape.used_params + 2.0 * reach * shape.q_width
