"""How a public model is trained, as words of the command line, and the same as one rank's `Work`.

Three things decide what a rank holds beside the model: the number formats (`precision`), who keeps what (`strategy`),
and the code that computes (`stack`). Each is a table or a function here; `decoder.py` and `memory.py` do the counting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from headway.planner.memory import MemoryForecast, Spread
from headway.planner.models.decoder import Decoder, count_lora
from headway.planner.step import Adapter, Loss, Work

_PAGED = {"paged-adamw": "adamw-fused", "paged-adamw-8bit": "adamw-8bit"}
"""bitsandbytes' optimizers whose state is unified memory: it moves to the host when the GPU has no room for it."""
_STATES = {"adamw": 8.0, "adamw-fused": 8.0, "adamw-8bit": 2.0, "lion": 4.0, "sgd": 4.0, "adafactor": 0.0}
"""Bytes of optimizer state for a weight in fp32."""
NF4 = 0.5 + 1 / 64 + 4 / (64 * 256)
"""Bytes of a 4-bit weight: one scale for 64 of them, itself in 8 bits."""
BITSANDBYTES = 0.36
"""Bytes a 4-bit weight of litgpt takes beside that: calibrated on its published rows, the cause is not established. The
other stacks need no such constant: what their tables show above the packed weights is fp32 embeddings."""
_LINEARS = {
    "all": ("q", "k", "v", "o", "gate", "up", "down"),
    "attention": ("q", "k", "v", "o"),
    "qkv": ("q", "k", "v"),
    "qv": ("q", "v"),
}
_ZERO_BUCKET, _ZERO_LIVE, _ZERO_GROUP = 5e8, 1e9, 1e9
"""DeepSpeed's own numbers: weights in a reduce bucket (`reduce_bucket_size`), weights that ZeRO-3 keeps together
(`stage3_max_live_parameters`), and weights it updates at a time (`sub_group_size`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the model is trained; each name is a word of the command line."""

    batch: int = 1
    """Samples a GPU takes at a time."""
    accumulation: int = 1
    samples: int = 0
    """Samples of the data set; with `epochs`, the whole run is timed."""
    epochs: int = 1
    seq: int = 2048
    """Tokens of a sample."""
    image: int = 224
    """Side of an image in pixels, or the shorter one."""
    classes: int = 0
    """Classes of a detector or segmenter."""
    precision: Literal["bf16", "fp16", "bf16-pure", "fp8", "fp32"] = "bf16"
    """16 bits by autocast over fp32 weights, everything in bf16, bf16 with products in 8 bits, or all in fp32."""
    optimizer: Literal[
        "adamw", "adamw-fused", "adamw-8bit", "paged-adamw", "paged-adamw-8bit", "lion", "sgd", "adafactor"
    ] = "adamw"
    """`adamw` is PyTorch's default, the foreach loop; `adamw-fused` its single kernel; a paged one's state moves to the
    host where the GPU has no room for it."""
    method: Literal["full", "lora", "qlora"] = "full"
    rank: int = 16
    targets: Literal["all", "attention", "qkv", "qv"] = "all"
    """Linear layers that get an adapter."""
    frozen: Literal["auto", "fp32"] = "auto"
    """Type of weights that are not trained: 16 bits (4 for `qlora`), or fp32, as they load when nobody says a type."""
    recompute: Literal["none", "selective", "full"] = "none"
    strategy: Literal["ddp", "zero1", "zero2", "zero3", "fsdp"] = "ddp"
    """Whole replicas, DeepSpeed's three stages, or PyTorch's sharding; `zero=2` says `strategy=zero2`."""
    tensor: int = 1
    """Ranks that share the matrices of a layer."""
    compile: bool = False
    loss: Literal["auto", "whole", "chunked", "fused", "cut"] = "auto"
    """How logits become a loss: all in fp32, in chunks, compiled, or never together (Liger, cut cross entropy)."""
    attention: Literal["flash", "flash3", "eager"] = "flash"
    """Without a matrix of the sequence's length squared, by kernels written for this generation of cards (flash
    attention 3 on Hopper, 4 on Blackwell), or with the matrix."""
    lengths: Literal["equal", "varied"] = "equal"
    """Whether every step has samples of one length, or the allocator meets many."""
    offload: Literal["none", "optimizer"] = "none"
    """What lives on the host: DeepSpeed's optimizer state and gradients (ZeRO-Offload)."""
    allocator: Literal["auto", "caching", "expandable"] = "auto"
    """Whether segments of memory can grow (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True); axolotl and Unsloth set
    it themselves."""
    stack: Literal["auto", "torch", "hf", "axolotl", "torchtune", "unsloth", "litgpt"] = "auto"
    """Whose code computes: a plain PyTorch loop (for full training), transformers with PEFT and bitsandbytes (for LoRA
    and QLoRA), or one that keeps less."""

    @property
    def codebase(self) -> str:
        """Whose code computes, where nobody has said it too."""
        if self.stack != "auto":
            return self.stack
        return "torch" if self.method == "full" else "hf"

    @property
    def has_growing_segments(self) -> bool:
        """Whether the allocator's segments can grow."""
        own = "expandable" if self.codebase in ("axolotl", "unsloth") else "caching"
        return (own if self.allocator == "auto" else self.allocator) == "expandable"

    @property
    def is_transformers(self) -> bool:
        """Whether transformers' models and Trainer compute."""
        return self.codebase in ("hf", "axolotl")

    @property
    def is_16bit_whole(self) -> bool:
        """Whether nothing is kept in fp32."""
        return self.precision == "bf16-pure"

    @property
    def is_mixed(self) -> bool:
        """Whether products are narrower than the weights somebody keeps."""
        return self.precision in ("bf16", "fp16", "fp8")

    @property
    def is_deepspeed(self) -> bool:
        """Whether DeepSpeed holds weights and states."""
        return self.strategy.startswith("zero")


HF_SPREAD = Spread(fixed=1.06, activations=1.1, logits=1.2)
"""Reserved over allocated in transformers' loop (slopes of fms-acceleration's table, which has both)."""
HF_FUSED_LOGITS = 1.9
"""The same of logits under a fused cross entropy, which needs less of them while 16-bit and fp32 ones still pass."""
VARIED_SPREAD = Spread(fixed=1.02, activations=1.12, logits=3.0)
"""The same where samples have many lengths: a segment that fitted one length does not fit a longer one, and is kept."""
HF_FSDP_SPREAD = Spread(fixed=1.2, activations=1.2, logits=1.2)
"""The same under FSDP, which gathers and reduces in streams of its own: the others cannot use their segments."""
ZERO3_FIXED = 1.2
"""The same under DeepSpeed's ZeRO-3, whose gathered layers of all sizes come and go between shards that stay."""
EXPANDABLE_SPREAD = Spread(fixed=1.03, activations=1.03, logits=1.03)
"""The same with segments that grow: a tensor of any size finds room behind the others."""
HF_CONTEXT_BYTES = 1.1e9
"""What the driver shows beside the allocator's in a process with transformers, bitsandbytes and flash attention."""


def weigh_outside(settings: Settings, forecast: MemoryForecast) -> MemoryForecast:
    """Return the forecast with what the stack's allocator and libraries take beside the tensors."""
    spread = forecast.spread
    if settings.is_transformers:
        spread = HF_FSDP_SPREAD if settings.strategy == "fsdp" else HF_SPREAD
        forecast = replace(forecast, context_bytes=HF_CONTEXT_BYTES)
        if settings.loss == "fused":
            spread = replace(spread, logits=HF_FUSED_LOGITS)
    if settings.lengths == "varied":
        spread = VARIED_SPREAD
    if settings.strategy == "zero3":
        spread = replace(spread, fixed=ZERO3_FIXED)
    if settings.has_growing_segments:
        spread = EXPANDABLE_SPREAD
    return replace(forecast, spread=spread)


def describe_step(
    settings: Settings, *, shape: Decoder | None, patch: int | None, ranks: int
) -> tuple[Decoder | None, Work]:
    """Return the shape as the stack runs it and one rank's step of it, on so many ranks."""
    side = settings.image // patch if patch else 0
    work = Work(
        micro_batch=settings.batch,
        seq_len=1 if shape is None else side**2 + 1 if patch else settings.seq,
        accumulation=settings.accumulation,
        compute_bytes=4.0 if settings.precision == "fp32" else 2.0,
        recompute="offload" if settings.codebase == "unsloth" and settings.recompute == "full" else settings.recompute,
        compiled=settings.compile,
        flash=settings.attention != "eager",
        newer_attention=settings.attention == "flash3",
        tensor=settings.tensor,
        sequence_parallel=settings.tensor > 1,
        keeps_gathered=settings.tensor > 1,
        **_formats(settings),
        **_layout(settings, ranks),
        **_loss(settings),
    )
    if shape is None:
        return None, work
    if settings.codebase == "litgpt":
        # One matrix for queries, keys and values; every checkpoint stores the output embedding apart.
        shape = replace(shape, one_qkv=True, tied=False)
    # These copy shared key and value heads out to every query head, as attention that is written out does.
    if settings.codebase in ("torchtune", "litgpt") or settings.attention == "eager":
        shape = replace(shape, expand_kv=True)
    if settings.method != "full":
        work = replace(work, adapter=_adapter(shape, settings), **_frozen(settings))
    return shape, work


def _formats(settings: Settings) -> dict[str, Any]:
    """Return the bytes of weights, gradients, states and the residual stream."""
    whole, pure = settings.method == "full", settings.is_16bit_whole
    narrow = pure or (settings.is_deepspeed and settings.is_mixed)
    # PEFT and Unsloth keep adapters in fp32 beside a 16-bit model; torchtune and litgpt in the model's type.
    is_fine = settings.codebase in ("torch", "hf", "axolotl", "unsloth") or not pure
    own = 4.0 if is_fine and not _casts_adapters(settings) else 2.0
    is_autocast = settings.strategy == "ddp" and (whole or (settings.frozen == "fp32" and settings.method == "lora"))
    kind = _PAGED.get(settings.optimizer, settings.optimizer)
    states = _STATES[kind]
    if kind != "adamw-8bit" and pure and (whole or own == 2.0):
        states /= 2
    return {
        "weight_bytes": (2.0 if narrow else 4.0) if whole else (4.0 if _is_wide(settings) else 2.0),
        "adapter_bytes": own,
        "grad_bytes": (2.0 if narrow else 4.0) if whole else own,
        "state_bytes": states,
        "paged_states": settings.optimizer in _PAGED,
        "master_bytes": 4.0 if settings.is_deepspeed and settings.is_mixed else 0.0,
        # Under autocast a sum of an fp32 stream and a 16-bit branch is fp32. DeepSpeed and FSDP cast the weights
        # themselves, embeddings too, so the stream is in 16 bits from its start.
        "stream_bytes": 4.0 if settings.is_mixed and is_autocast else None,
        # fms-acceleration's table: the slope of LoRA under FSDP is one stream of all blocks above that on one GPU,
        # with and without logits. Its cause inside FSDP is not established.
        "keeps_stream": settings.is_mixed and _is_sharded_peft(settings),
        "cast_weights": settings.is_mixed and is_autocast and (whole or settings.recompute == "none"),
        # Liger's switch in transformers brings its norms, rotary and gated MLP with its linear cross entropy.
        "fused_kernels": settings.codebase == "unsloth" or (settings.codebase == "hf" and settings.loss == "cut"),
    }


def _is_sharded_peft(settings: Settings) -> bool:
    """Say whether fp32 adapters are beside frozen weights of 16 bits under FSDP; fp32 ones are cast with them."""
    is_peft = settings.is_transformers and settings.method != "full" and settings.frozen == "auto"
    return is_peft and settings.strategy == "fsdp"


def _is_wide(settings: Settings) -> bool:
    """Say whether frozen weights are kept in fp32."""
    return settings.precision == "fp32" or (settings.frozen == "fp32" and not _casts_adapters(settings))


def _casts_adapters(settings: Settings) -> bool:
    """Say whether DeepSpeed casts the adapters with the rest (their masters are its own)."""
    return settings.is_deepspeed and settings.is_mixed


def _layout(settings: Settings, ranks: int) -> dict[str, Any]:
    """Return over how many ranks weights, gradients and states are cut, and what exchanging them takes.

    DeepSpeed in 16 bits: 2 + 2 + 12/N bytes of a weight in stage 1, 2 + 14/N in stage 2, 16/N in stage 3 (weights and
    gradients in 16 bits, master weights and two moments in fp32), and its buffers.
    """
    data = max(1, ranks // settings.tensor)
    cut = {"zero1": (1, 1, data), "zero2": (1, data, data), "zero3": (data,) * 3, "fsdp": (data,) * 3}
    weights, gradients, states = cut.get(settings.strategy, (1, 1, 1))
    out: dict[str, Any] = {"shard_weights": weights, "shard_grads": gradients, "shard_states": states}
    if settings.offload == "optimizer":
        out |= {"host_states": True, "host_grads": settings.is_deepspeed}
    if settings.is_deepspeed:
        out["bucket_params"] = _ZERO_BUCKET
        if settings.is_mixed:
            out["step_bytes"] = 4.0  # gradients in fp32, as the masters take them
        if settings.strategy == "zero3":
            out |= {"live_params": _ZERO_LIVE, "step_params": _ZERO_GROUP}
        return out
    if settings.optimizer == "adamw" and settings.codebase in ("torch", "hf", "axolotl", "unsloth"):
        # torch.optim's foreach loop writes the root of all second moments out at once.
        out["step_bytes"] = 2.0 if settings.is_16bit_whole and settings.method == "full" else 4.0
    if settings.strategy == "ddp" and ranks > 1:
        narrow = settings.is_16bit_whole and settings.method == "full"
        out["bucket_bytes"] = 2.0 if narrow else 4.0  # gradients, once more
    return out


def _loss(settings: Settings) -> dict[str, Any]:
    """Return how logits become a loss, and what a stack holds of them beside."""
    chosen: dict[str, Loss] = {"torchtune": "chunked", "unsloth": "cut"}
    loss: Loss = chosen.get(settings.codebase, "fused" if settings.compile else "whole")
    if settings.loss != "auto":
        loss = settings.loss
    # A transformers model returns its logits, in fp32, and shifts a copy of them by a token: they live beside what the
    # loss makes of them, and the copy's gradient is as long again (slopes of four tables: 15 to 18 bytes a logit).
    copies = {"whole": 4.0, "fused": 5.0}.get(loss, 0.0) if settings.is_transformers else 0.0
    if loss == "whole" and _upcasts(settings):
        copies = 3.0  # the head is in fp32, so its output never was in 16 bits
    # The Trainer autocasts even where every weight is in 16 bits.
    is_plain = settings.is_16bit_whole and not settings.is_transformers
    out = {"loss": loss, "logit_copies": copies, "narrow_loss": settings.is_deepspeed or is_plain}
    if settings.codebase == "unsloth" and loss != "cut":
        # Before it cut the cross entropy (November 2024), Unsloth's model returned its logits, and the loop held them.
        out |= {"holds_logits": True, "logit_copies": 2.0}
    return out


def _upcasts(settings: Settings) -> bool:
    """Say whether PEFT's `prepare_model_for_kbit_training` has cast what is not packed to fp32.

    That is embeddings, norms, and so the residual stream. `precision=bf16-pure` leaves them as they are, and DeepSpeed
    and FSDP cast them back.
    """
    is_packed = settings.method == "qlora" and settings.codebase == "hf"
    return is_packed and settings.precision != "bf16-pure" and settings.strategy == "ddp"


def _frozen(settings: Settings) -> dict[str, Any]:
    """Return how weights that are not trained are stored."""
    if settings.method != "qlora":
        return {}
    if settings.codebase == "litgpt":
        return {"frozen_bytes": NF4 + BITSANDBYTES, "packed_inputs": True}
    return {"frozen_bytes": NF4} | (
        # A packed linear answers in the type of its input, and the norm before an MLP is in fp32.
        {"table_bytes": 4.0, "stream_bytes": 4.0, "mlp_bytes": 4.0} if _upcasts(settings) else {}
    )


def _adapter(shape: Decoder, settings: Settings) -> Adapter:
    """Return LoRA as the stack has it: two thin matrices beside each wrapped layer, and what they keep of its input."""
    wrapped = tuple(name for name in _LINEARS[settings.targets] if name != "gate" or shape.mlp == "swiglu")
    params = count_lora(shape, settings.rank, wrapped)
    if settings.codebase == "unsloth":  # its backward reads what the frozen layers keep anyway
        return Adapter(params=params, inputs=(), dropout=False)
    if settings.codebase in ("torchtune", "litgpt"):
        return Adapter(params=params, inputs=wrapped, dropout=True)
    # PEFT casts the input to the adapter's type; under autocast the product casts it back, again for each layer.
    return Adapter(params=params, inputs=wrapped, dropout=False, cast_bytes=2.0 if settings.is_mixed else 4.0)
