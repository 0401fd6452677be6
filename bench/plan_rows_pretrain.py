"""Pre-training rows as questions: torchtitan, Megatron, nanochat and modded-nanogpt, each with what its code keeps."""

from __future__ import annotations

import re
from dataclasses import replace

from headway.planner.memory import add_held, weigh_validation
from headway.planner.models.decoder import Decoder
from headway.planner.models.known import nanochat
from headway.planner.step import Work
from plan_question import InexpressibleError, Question, Row, batch_of, depth_of, question_of


def ask_torchtitan(row: Row, shape: Decoder) -> Question:
    """torchtitan: fp32 weights, gradients and states sharded by FSDP2, bf16 compute, whole fp32 logits."""
    batch, seq_len = batch_of(row)
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
        async_tensor="async" in strategy.lower(),
        sequence_parallel=tensor > 1,
        keeps_gathered=tensor > 1,
        recompute="selective" if recompute.startswith("selective") else recompute,
        compiled=bool(row.get("compile", False)),
        # The loss is compiled too since early 2025; the benchmarks of 2024 upcast all logits.
        loss="fused" if row.get("compile") and "202412" not in row["source"] else "whole",
    )
    return question_of(row, replace(shape, expand_kv=True), work)


UNSTATED = {
    r"mla|fp8|mtp|muon": "latent attention, fp8, several heads or Muon: no formula",
    r"grpo": "reinforcement learning: generation beside training",
    r"uneven_pipeline|account_for": "layers of the last stage not stated",
    r"release|memory_speed|weekly": "a large run, whose further options the row does not state",
    r"offloading|cudagraph": "activations on the host or in graphs: no formula",
}
"""Parts of a Megatron test's name that say it does what no formula covers."""


def ask_megatron(row: Row, shape: Decoder) -> Question:
    """Megatron: bf16 weights, fp32 main gradients, fp32 master and states, fused kernels."""
    ways = {name: int(number) for name, number in re.findall(r"(DP|TP|PP|CP) (\d+)", row["strategy"])}
    test = row["model"]
    if not re.search(r"test gpt", test):
        raise InexpressibleError("no decoder: T5, BERT, Mamba, retrieval or pictures")
    for pattern, reason in UNSTATED.items():
        if re.search(pattern, test):
            raise InexpressibleError(reason)
    batch, whole = batch_of(row)
    tensor, data = ways.get("TP", 1), ways.get("DP", 1)
    pad = 128 * tensor
    shape = replace(
        shape,
        vocab=-(-shape.vocab // pad) * pad,
        one_qkv=True,
        rotary="rope" in test,
        qk_norm="qk_layernorm" in test,
    )
    distributed = "distributed" in row["optimizer"]
    work = Work(
        micro_batch=batch,
        seq_len=whole // ways.get("CP", 1),
        attended=whole,
        accumulation=2,  # main gradients live in one buffer from the first step on
        weight_bytes=2,
        grad_bytes=4,
        state_bytes=8,
        master_bytes=4,
        shard_states=max(1, data // (2 if "multi_dist_optimizer" in test else 1)) if distributed else 1,
        tensor=tensor,
        pipeline=ways.get("PP", 1),
        sequence_parallel=bool(row.get("sequence_parallel")),
        recompute="full" if row.get("activation_checkpointing") == "full" else "none",
        in_flight=_in_flight(row, ways),
        fused_kernels=True,
        dropout=True,
        flash=row.get("attention") != "unfused" and "implementation local" not in row.get("notes", ""),
        # One more fp32 copy in the fused loss; logits' gradients of two micro-batches wait for the embedding's.
        logit_copies=4.0 if re.search(r"cross_entropy_loss_fusion|defer_embedding_wgrad", test) else 0.0,
    )
    if row.get("num_experts"):
        shape, work = _megatron_experts(row, shape, work)
    return question_of(row, shape, work)


def _megatron_experts(row: Row, shape: Decoder, work: Work) -> tuple[Decoder, Work]:
    """Return shape and work with the experts a Megatron test's name tells: `8experts2parallel`, `etp1_ep4`, `top2`."""
    test = row["model"]
    over = re.search(r"ep(\d+)(?!.*experts\dparallel)", test) or re.search(r"experts(\d)parallel", test)
    if row["hidden"] != 512 or "_moe_" in test:
        raise InexpressibleError("width of an expert, and of one for all tokens, not stated")
    own = re.search(r"etp(\d)", test)
    # Tests of two experts' ranks send a token to one expert unless they say `top2`; two is the library's own number.
    active = 1 if "parallel" in test and "top2" not in test else 2
    shape = replace(shape, experts=row["num_experts"], active=active)
    return shape, replace(work, expert_parallel=int(over[1]) if over else 1, expert_tensor=int(own[1]) if own else None)


def _in_flight(row: Row, ways: dict[str, int]) -> float:
    """Return how often the last stage's activations are held: interleaved stages start many micro-batches early."""
    stages = ways.get("PP", 1)
    virtual = re.search(r"vp(\d)", row["model"])
    if stages == 1 or virtual is None:
        return 1.0
    chunks = max(1, row["layers"] // stages // int(virtual[1]))
    micro_batches = row["global_batch"] // (row["micro_batch"] * ways.get("DP", 1))
    group = micro_batches if "tunable_overlap" in row["model"] else stages
    return min((chunks - 1) * group + 1, micro_batches * chunks) / chunks


def ask_nanochat(row: Row) -> Question:
    """nanochat: fp32 matrices, bf16 embedding, Muon and AdamW with states over the ranks, compiled."""
    depth = depth_of(row)
    batch, seq_len = batch_of(row)
    notes = row.get("notes", "")
    if "multi-token" in notes:
        raise InexpressibleError("several heads over the same stream: not in the decoder family")
    vocab = row.get("vocab", 65536)
    shape = nanochat(depth, vocab=vocab, mlp="swiglu" if "SwiGLU" in notes else "relu2")
    if row.get("params"):
        # What it has beyond blocks and embeddings since 2026 are embedded values.
        more = max(0, int(row["params"]) - shape.params)
        shape = replace(shape, more_params=more, mixed_values=more > shape.vocab * shape.hidden)
    ranks = row["world_size"]
    tokens = row.get("tokens_per_step", batch * seq_len * ranks)
    accumulation = row.get("grad_accum", max(1, tokens // (batch * seq_len * ranks)))
    work = replace(
        _muon(shape, tables=2),
        micro_batch=batch,
        seq_len=seq_len,
        accumulation=accumulation,
        shard_states=ranks,
        compiled=bool(row.get("compile", True)),
        loss="fused",
    )
    return question_of(row, shape, work)


FP8_HEAD, LONG_VALIDATION, SHARED_ROTARY = "2025-01-13", "2025-01-26", "2025-09-10"
"""First modded-nanogpt records with an FP8 output head, with validation on 256 Ki tokens per GPU, and with one rotary
table for all blocks instead of one each."""
TABLES = {"2024-12-04": 3, "2026-01-19": 8, "2026-01-26": 10}
"""Embedding tables beside input and output by a record's date: values of three layers, hashed pairs (five times as
long), values of five layers."""


def ask_modded(row: Row, shape: Decoder) -> Question:
    """modded-nanogpt: nanochat's parent, with embedded values, long rotary tables and a longer validation."""
    record = re.search(r"/(track_\w+)/(\d{4}-\d\d-\d\d)", row["source"])
    if record is None:
        raise InexpressibleError("the record's date, and so its validation length, not stated")
    track, date = record.groups()
    if track == "track_2_medium" and "seq_len" not in row:
        raise InexpressibleError("length of a sequence not stated, and it sets the medium track's peak")
    # Where a schedule is named, its longest step: 64 Ki tokens per GPU in the first scripts, 48 Ki since.
    train = row.get("seq_len", 49152 if date >= LONG_VALIDATION else 65536) * row.get("micro_batch", 1)
    more = max((number for since, number in TABLES.items() if date >= since), default=0)
    shape = replace(
        shape,
        ffn=4 * shape.hidden,
        mlp="relu2",
        norm="rms",
        qk_norm=True,
        mixed_values=more > 0,
        more_params=more * shape.vocab * shape.hidden,
    )
    ranks = row["world_size"]
    work = replace(
        _muon(shape, tables=2 + more),
        seq_len=train,
        attended=min(train, 1024),  # windows within documents
        shard_states=ranks,
        compiled=True,
        loss="fused",
        # The gradient of the logits once more in 8 bits, as it is and turned for the weights' product.
        logit_copies=2.0 if date >= FP8_HEAD else 0.0,
    )
    question = question_of(row, shape, work)
    forecast, longest = question.forecast, train
    if date >= LONG_VALIDATION:
        longest = 4 * 65536
        validation = weigh_validation(shape, work, tokens=longest, ranks=ranks)
        forecast = max(forecast, validation, key=lambda one: one.allocated_bytes)
    rotary = longest * shape.hidden // shape.heads * 4.0 * (shape.layers if date < SHARED_ROTARY else 1)
    return replace(question, forecast=add_held(forecast, "position-tables", rotary))


def _muon(shape: Decoder, *, tables: int) -> Work:
    """Return the storage of Muon for matrices (fp32, one moment) and Adam for embeddings (bf16, the head fp32)."""
    table = shape.vocab * shape.hidden
    matrices = shape.params - tables * table
    weights = 4 * (matrices + table) + 2 * (tables - 1) * table
    # Adam keeps two moments of every embedding, Muon one of the matrices.
    states = 4 * matrices + 8 * table + 4 * (tables - 1) * table
    return Work(
        micro_batch=1,
        weight_bytes=weights / shape.params,
        grad_bytes=weights / shape.params,
        state_bytes=states / shape.params,
    )
