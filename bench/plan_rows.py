"""Reads a published training figure as a question for the planner, or says why it cannot be asked.

Only what the row states, and what its codebase is known to do, goes in; the measured figures never do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from headway.plan.convnet import Tape
from headway.plan.decoder import Decoder
from headway.plan.known import find_decoder, nanochat
from headway.plan.memory import MemoryForecast, weigh_decoder, weigh_loading
from headway.plan.work import Adapter, Work

GIB = 1 << 30
NF4, NF4_DOUBLE = 0.5 + 4 / 64, 0.5 + 1 / 64 + 4 / (64 * 256)
"""Bytes of a 4-bit weight with an fp32 scale for 64, and with those scales in 8 bits."""
BITSANDBYTES = 0.42
"""What a bitsandbytes weight holds beside its packed bytes: calibrated, the cause is not established."""
LADDER = (
    "baseline",
    "packed",
    "compile",
    "chunked",
    "activation checkpointing",
    "backward",
    "activation offload",
    "8-bit",
)
"""torchtune's table of cumulative savings: each row has those before it."""
Row = dict[str, Any]


class InexpressibleError(Exception):
    """No built-in family can be asked about this row; its text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A row as the planner sees it."""

    forecast: MemoryForecast
    family: str
    shape: Decoder | None = None
    work: Work | None = None
    tape: Tape | None = None
    params: float = 0.0


def measured_bytes(row: Row) -> tuple[float, str] | None:
    """Return the row's peak in bytes, and which of the three figures it is."""
    metric = str(row.get("mem_metric", ""))
    if "peak_gib" in row:
        return row["peak_gib"] * GIB, "reserved" if metric.startswith("peak reserved") else "allocated"
    if "peak_reserved_gib" in row:
        # Evaluation by generation is in the maximum; the source calls the 99th percentile the training peak.
        return row.get("mem_reserved_99th_gib", row["peak_reserved_gib"]) * GIB, "reserved"
    if "peak_gb" in row:
        # litgpt and torchao divide by 1e9; the others print GiB and call it GB.
        unit = (
            1e9
            if "1e9" in row.get("mem_unit", "") or "litgpt" in row["source"] or "pytorch/ao" in row["source"]
            else GIB
        )
        return row["peak_gb"] * unit, "reserved" if metric.startswith("peak reserved") else "allocated"
    return None


def ask(row: Row) -> Question:
    """Return the forecast for a row, or raise `InexpressibleError`."""
    if row["kind"] == "estimated":
        raise InexpressibleError("a rule of thumb, not a run: no batch, no length")
    if row["kind"] == "claimed":
        raise InexpressibleError("a guide's claim, not a run (checked in docs/claims.md)")
    try:
        return _ask(row)
    except KeyError as missing:
        raise InexpressibleError(f"{missing.args[0]} not stated") from missing


def _ask(row: Row) -> Question:
    family, source = row["family"], row["source"]
    if family in ("llm", "llm-moe", "llm-finetune"):
        return _ask_decoder(row, source)
    if family in ("vision-detection", "vision-segmentation", "vision-classification"):
        from plan_rows_vision import ask_vision

        return ask_vision(row)
    raise InexpressibleError(f"no built-in family for {family}")


def _ask_decoder(row: Row, source: str) -> Question:
    if row.get("num_experts"):
        raise InexpressibleError("mixture of experts: where the tokens go sets the peak")
    shape = _shape(row)
    if "litgpt" in source:
        return _litgpt(row, shape)
    if "peft" in source:
        return _peft(row, shape)
    if "torchtune" in source or ("pytorch/ao" in source and row["family"] == "llm-finetune"):
        return _torchtune(row, shape)
    if "torchtitan" in source:
        return _torchtitan(row, shape)
    if "Megatron" in source:
        return _megatron(row, shape)
    if "nanochat" in source or "nanochat" in row["model"]:
        return _nanochat(row)
    if "modded-nanogpt" in source:
        return _modded(row, shape)
    return _plain(row, shape)


def _shape(row: Row) -> Decoder:
    """Return the shape the row states, filled in from the published one of that name."""
    name = row["model"]
    known = find_decoder(name)
    if "nanochat" in name:
        return nanochat(int(re.findall(r"d(\d+)", name)[0]), vocab=row.get("vocab", 65536))
    if known is not None:
        return known
    if "layers" not in row or "hidden" not in row:
        raise InexpressibleError(f"shape of {name} not stated and not in the table")
    hidden, vocab = row["hidden"], row.get("vocab", 32000)
    megatron = "Megatron" in row["source"]
    gated = "swiglu" in name or ("ffn" in row and row["ffn"] != 4 * hidden) or "Llama" in name
    return Decoder(
        layers=row["layers"],
        hidden=hidden,
        heads=row.get("heads", hidden // 64),
        kv_heads=row.get("kv_heads"),
        vocab=vocab,
        ffn=row.get("ffn", int(hidden * 8 / 3) if gated and not megatron else 4 * hidden),
        mlp="swiglu" if gated else "gelu",
        norm="rms" if gated and not megatron else "layer",
        tied=(megatron and "untied" not in name) or "MPT" in name,
    )


def _batch(row: Row) -> tuple[int, int]:
    if "micro_batch" not in row:
        raise InexpressibleError("micro-batch not stated")
    if "seq_len" not in row:
        raise InexpressibleError("length of a sequence not stated")
    return row["micro_batch"], row["seq_len"]


# --- codebases


def _litgpt(row: Row, shape: Decoder) -> Question:
    """litgpt: bf16 weights and states, one qkv matrix, separate output embedding, whole logits."""
    batch, seq_len = _batch(row)
    # Every litgpt checkpoint of that time stores the output embedding apart, also where the paper ties it.
    shape = replace(shape, one_qkv=True, tied=False, expand_kv=True)
    method = str(row["method"])
    work = Work(
        micro_batch=batch,
        seq_len=seq_len,
        accumulation=max(1, row.get("global_batch", 8) // (batch * row["world_size"])),
        weight_bytes=2,
        grad_bytes=2,
        state_bytes=4,
    )
    if method == "full":
        if row["world_size"] > 1:
            raise InexpressibleError("the peak is set while loading (whole weights beside the shards), not by a step")
        return _question(row, shape, work)
    frozen = None
    if "nf4-dq" in method:
        frozen = NF4_DOUBLE + BITSANDBYTES
    elif "nf4" in method or method == "qlora":
        frozen = NF4 + BITSANDBYTES
    trained = row.get("trainable_params")
    if method.startswith("adapter"):
        v2 = method.startswith("adapter_v2")
        adapter = Adapter(params=int(trained), inputs=(), scales_outputs=v2)
    else:
        # Its configs of Gemma and Phi wrap every linear (rank 8), the others queries and values (rank 32).
        every = not trained and row["model"].lower().startswith(("gemma", "phi"))
        rank = 8 if trained or every else 32
        targets = ("q", "k", "v", "o", "gate", "up", "down") if every else ("q", "v")
        if every and shape.mlp != "swiglu":
            targets = tuple(name for name in targets if name != "gate")
        count = trained or rank * shape.layers * (2 * shape.hidden + shape.q_width + shape.kv_width)
        adapter = Adapter(params=int(count), inputs=targets, dropout=True)
    work = replace(work, adapter=adapter, frozen_bytes=frozen)
    if not row["strategy"].startswith("FSDP"):
        return _question(row, shape, work)
    # Its FSDP start puts the whole model on every GPU; with adapters that is more than any step takes.
    ranks = row["world_size"]
    sharded = replace(work, shard_weights=ranks, shard_grads=ranks, shard_states=ranks, recompute="full")
    question = _question(row, shape, sharded)
    load = weigh_loading(2 * shape.params, ranks=ranks, whole=2 * shape.embedding_params)
    return replace(question, forecast=max(question.forecast, load, key=lambda one: one.allocated_bytes))


def _peft(row: Row, shape: Decoder) -> Question:
    """transformers with PEFT: bf16 base, fp32 adapters, whole fp32 logits, batches of many lengths."""
    batch, seq_len = _batch(row)
    work = Work(micro_batch=batch, seq_len=seq_len, weight_bytes=2, grad_bytes=2, state_bytes=4, loss="whole")
    if row["trainable_params"] < 0.5 * row["params"]:
        adapter = Adapter(params=row["trainable_params"], inputs=("q", "v"), dropout=False)
        work = replace(work, grad_bytes=4, state_bytes=8, adapter=adapter)
    return _question(row, shape, work)


def _torchtune(row: Row, shape: Decoder) -> Question:
    """torchtune: bf16 weights, gradients and states, fp32 logits outside of the compiled model."""
    notes, method = row.get("notes", ""), str(row["method"]).lower()
    packed = row.get("packed", False)
    if "seq_len" not in row:
        # Alpaca, unpacked (the tutorial and the optimizer table): its longest samples are about this long.
        row = {**row, "seq_len": 512}
    elif not packed:
        raise InexpressibleError("unpacked samples: seq_len is their limit, their length is not stated")
    batch, seq_len = _batch(row)
    if "offload" in notes.lower() and "CPU" in notes:
        raise InexpressibleError("weights on the host, moved block by block: not a built-in strategy")
    text = f"{notes} {row.get('optimizer', '')} {row.get('activation_checkpointing', '')}"
    rung = -1
    if "cumulative ladder" in notes:
        rung = max((place for place, word in enumerate(LADDER) if word in notes.split(":", 1)[1]), default=0)
    shards = row["world_size"] if "FSDP" in row["strategy"] else 1
    recompute = str(row.get("activation_checkpointing", "full"))
    work = Work(
        micro_batch=batch,
        seq_len=seq_len,
        weight_bytes=2,
        grad_bytes=2,
        state_bytes=2 if "8-bit" in text else 1 if "4-bit" in text else 4,
        host_states="paged" in text,
        compiled=bool(row.get("compile", "compile" in notes)),
        recompute="offload" if "offload" in recompute else "none" if recompute == "none" else "full",
        loss="chunked" if rung >= LADDER.index("chunked") or (rung < 0 and packed) else "whole",
        step_in_backward="optimizer in backward" in text or rung >= LADDER.index("backward"),
        shard_weights=shards,
        shard_grads=shards,
        shard_states=shards,
    )
    shape = replace(shape, expand_kv=True)
    if method == "full":
        return _question(row, shape, work)
    rank = int((re.findall(r"r=(\d+)", method) or [8])[0])
    targets = ("q", "k", "v", "o") if "out" in method else ("q", "v")
    widths = {"q": shape.q_width, "k": shape.kv_width, "v": shape.kv_width, "o": shape.hidden}
    count = sum(rank * (shape.hidden + widths[name]) for name in targets) * shape.layers
    adapter = Adapter(params=count, inputs=targets, dropout=True)
    frozen = NF4_DOUBLE if "qlora" in method else None
    return _question(row, shape, replace(work, adapter=adapter, frozen_bytes=frozen))


def _torchtitan(row: Row, shape: Decoder) -> Question:
    """torchtitan: fp32 weights, gradients and states sharded by FSDP2, bf16 compute, whole fp32 logits."""
    batch, seq_len = _batch(row)
    strategy = row["strategy"]
    parts = {name: int(number) for name, number in re.findall(r"(TP|CP|PP) (\d+)", strategy)}
    if parts.get("PP", 1) > 1:
        raise InexpressibleError("pipeline schedule not stated")
    tensor, context = parts.get("TP", 1), parts.get("CP", 1)
    shards = row["world_size"] // tensor
    recompute = row.get("activation_checkpointing", "none")
    work = Work(
        micro_batch=batch,
        seq_len=seq_len // context,
        attended=seq_len,
        weight_bytes=4,
        grad_bytes=4,
        state_bytes=8,
        shard_weights=shards,
        shard_grads=shards,
        shard_states=shards,
        tensor=tensor,
        sequence_parallel=tensor > 1,
        recompute="selective" if recompute.startswith("selective") else recompute,
        compiled=bool(row.get("compile", False)),
        # The loss is compiled too since early 2025; the benchmarks of 2024 upcast all logits.
        loss="fused" if row.get("compile") and "202412" not in row["source"] else "whole",
    )
    return _question(row, replace(shape, expand_kv=True), work)


def _megatron(row: Row, shape: Decoder) -> Question:
    """Megatron: bf16 weights, fp32 main gradients, fp32 master and states, fused kernels."""
    ways = {name: int(number) for name, number in re.findall(r"(DP|TP|PP|CP) (\d+)", row["strategy"])}
    if not re.search(r"test gpt", row["model"]):
        raise InexpressibleError("no decoder: T5, BERT, Mamba, retrieval or pictures")
    if re.search(r"mla|fp8|frozen|mtp", row["model"]):
        raise InexpressibleError("latent attention, fp8 or frozen parts: no formula")
    batch, whole = _batch(row)
    seq_len = whole // ways.get("CP", 1)
    tensor, data = ways.get("TP", 1), ways.get("DP", 1)
    pad = 128 * tensor
    shape = replace(shape, vocab=-(-shape.vocab // pad) * pad, one_qkv=True)
    distributed = "distributed" in row["optimizer"]
    work = Work(
        micro_batch=batch,
        seq_len=seq_len,
        attended=whole,
        accumulation=2,  # main gradients live in one buffer from the first step on
        weight_bytes=2,
        grad_bytes=4,
        state_bytes=8,
        master_bytes=4,
        shard_states=data if distributed else 1,
        tensor=tensor,
        pipeline=ways.get("PP", 1),
        sequence_parallel=bool(row.get("sequence_parallel")),
        recompute="full" if row.get("activation_checkpointing") == "full" else "none",
        in_flight=_in_flight(row, ways),
        fused_kernels=True,
        flash=row.get("attention") != "unfused" and "implementation local" not in row.get("notes", ""),
    )
    return _question(row, shape, work)


def _in_flight(row: Row, ways: dict[str, int]) -> float:
    """Return how often the last stage's activations are held: interleaved stages start many micro-batches early."""
    stages = ways.get("PP", 1)
    virtual = re.search(r"vp(\d)", row["model"])
    if stages == 1 or virtual is None:
        return 1.0
    chunks = row["layers"] // stages // int(virtual[1])
    micro_batches = row["global_batch"] // (row["micro_batch"] * ways.get("DP", 1))
    return min((chunks - 1) * stages + 1, micro_batches * chunks) / chunks


def _nanochat(row: Row) -> Question:
    """nanochat: fp32 matrices, bf16 embedding, Muon and AdamW with states over the ranks, compiled."""
    depth = int(re.findall(r"d(\d+)", row["model"])[0])
    batch, seq_len = _batch(row)
    notes = row.get("notes", "")
    if "multi-token" in notes:
        raise InexpressibleError("several heads over the same stream: not in the decoder family")
    vocab = row.get("vocab", 65536)
    shape = nanochat(depth, vocab=vocab, mlp="swiglu" if "SwiGLU" in notes else "relu2")
    if row.get("params"):
        shape = replace(shape, more_params=max(0, int(row["params"]) - shape.params))
    ranks = row["world_size"]
    tokens = row.get("tokens_per_step", batch * seq_len * ranks)
    accumulation = row.get("grad_accum", max(1, tokens // (batch * seq_len * ranks)))
    table = shape.vocab * shape.hidden
    matrices = shape.params - 2 * table
    # Adam keeps two moments of both embeddings, Muon one of the matrices; the input embedding is bf16.
    weights = 4 * (matrices + table) + 2 * table
    states = (4 * matrices + 8 * table + 4 * table) / shape.params
    work = Work(
        micro_batch=batch,
        seq_len=seq_len,
        accumulation=accumulation,
        weight_bytes=weights / shape.params,
        grad_bytes=weights / shape.params,
        state_bytes=states,
        shard_states=ranks,
        compiled=bool(row.get("compile", True)),
        loss="fused",
    )
    return _question(row, shape, work)


def _modded(row: Row, shape: Decoder) -> Question:
    raise InexpressibleError("hand-written kernels, and validation at a length not stated sets the peak")


def _plain(row: Row, shape: Decoder) -> Question:
    """A plain PyTorch script: weights and gradients as the precision says, AdamW."""
    batch, seq_len = _batch(row)
    precision = str(row.get("precision", "fp32"))
    mixed = "amp" in precision or "mixed" in precision
    pure = not mixed and ("bf16" in precision or "fp16" in precision or "bfloat16" in precision)
    if "int8" in precision:
        raise InexpressibleError("int8 training: not a built-in number format")
    strategy = str(row.get("strategy", "single"))
    shards = row["world_size"] if "FSDP" in strategy or "ZeRO-3" in strategy else 1
    one = 2 if mixed or pure else 4
    work = Work(
        micro_batch=batch,
        seq_len=seq_len,
        accumulation=row.get("grad_accum", 1),
        weight_bytes=2 if pure else 4,
        grad_bytes=2 if pure else 4,
        state_bytes=4 if pure else 8,
        compute_bytes=one,
        shard_weights=shards,
        shard_grads=shards,
        shard_states=row["world_size"] if "ZeRO" in strategy else shards,
        recompute="full" if row.get("activation_checkpointing") == "full" else "none",
        compiled=bool(row.get("compile", False)),
        # llm-foundry: low-precision norms, and a cross entropy that overwrites its logits.
        fused_kernels="llm-foundry" in row["source"],
        loss="fused" if row.get("compile") or "llm-foundry" in row["source"] else "whole",
        cast_weights=mixed and shards == 1,
        bucket_bytes=4 if strategy.startswith("DDP") else 0,
    )
    if row.get("params") and not shape.more_params:
        shape = replace(shape, more_params=max(0, int(row["params"]) - shape.params))
    return _question(row, shape, work)


def _question(row: Row, shape: Decoder, work: Work) -> Question:
    forecast = weigh_decoder(shape, work, ranks=row.get("world_size", 1))
    return Question(forecast=forecast, family="decoder", shape=shape, work=work, params=shape.params)


__all__ = ["InexpressibleError", "Question", "Row", "ask", "measured_bytes"]
