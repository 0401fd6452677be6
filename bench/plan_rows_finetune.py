"""Fine-tuning rows as questions: litgpt, PEFT and torchtune, each with what its code keeps."""

from __future__ import annotations

import re
from dataclasses import replace

from headway.planner.memory import weigh_loading
from headway.planner.models.decoder import Decoder
from headway.planner.models.public import BITSANDBYTES, NF4
from headway.planner.step import Adapter, Work
from plan_question import InexpressibleError, Question, Row, batch_of, question_of

NF4_SINGLE = 0.5 + 4 / 64
"""Bytes of a 4-bit weight with an fp32 scale for 64; the planner's own number has those scales in 8 bits."""
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


def ask_litgpt(row: Row, shape: Decoder) -> Question:
    """litgpt: bf16 weights and states, one qkv matrix, separate output embedding, whole logits."""
    batch, seq_len = batch_of(row)
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
        return question_of(row, shape, work)
    frozen = None
    if "nf4-dq" in method:
        frozen = NF4 + BITSANDBYTES
    elif "nf4" in method or method == "qlora":
        frozen = NF4_SINGLE + BITSANDBYTES
    trained = row.get("trainable_params")
    if method.startswith("adapter"):
        v2 = method.startswith("adapter_v2")
        adapter = Adapter(params=int(row["trainable_params"]), inputs=(), scales_outputs=v2)
    else:
        # Its configs of Gemma, Phi (rank 8) and TinyLlama (32) wrap every linear, the others queries and values (32).
        name = row["model"].lower()
        every = not trained and name.startswith(("gemma", "phi", "tiny-llama"))
        rank = 8 if trained or (every and "llama" not in name) else 32
        targets = ("q", "k", "v", "o", "gate", "up", "down") if every else ("q", "v")
        if every and shape.mlp != "swiglu":
            targets = tuple(name for name in targets if name != "gate")
        count = trained or rank * shape.layers * (2 * shape.hidden + shape.q_width + shape.kv_width)
        adapter = Adapter(params=int(count), inputs=targets, dropout=True)
    # Its runs of 2024 have a bitsandbytes that keeps the inputs of packed linears; those of 2023 do not.
    work = replace(work, adapter=adapter, frozen_bytes=frozen, packed_inputs=method == "qlora")
    if not row["strategy"].startswith("FSDP"):
        return question_of(row, shape, work)
    # Its FSDP start puts the whole model on every GPU and has it there still when the first step gathers two blocks;
    # with adapters that is more than any later step takes.
    ranks = row["world_size"]
    sharded = replace(work, shard_weights=ranks, shard_grads=ranks, shard_states=ranks, recompute="full")
    question = question_of(row, shape, sharded)
    whole = 2 * (shape.embedding_params + 2 * shape.block_params)
    load = weigh_loading(2 * shape.params, ranks=ranks, whole=whole)
    return replace(question, forecast=max(question.forecast, load, key=lambda one: one.allocated_bytes))


def ask_torchtune(row: Row, shape: Decoder) -> Question:
    """torchtune: bf16 weights, gradients and states, fp32 logits outside of the compiled model."""
    notes, method = row.get("notes", ""), str(row["method"]).lower()
    packed = row.get("packed", False)
    if "seq_len" not in row:
        # Alpaca, unpacked (the tutorial and the optimizer table): its longest samples are about this long.
        row = {**row, "seq_len": 512}
    elif not packed:
        raise InexpressibleError("unpacked samples: seq_len is their limit, their length is not stated")
    batch, seq_len = batch_of(row)
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
        return question_of(row, shape, work)
    rank = int((re.findall(r"r=(\d+)", method) or [8])[0])
    targets = ("q", "k", "v", "o") if "out" in method else ("q", "v")
    widths = {"q": shape.q_width, "k": shape.kv_width, "v": shape.kv_width, "o": shape.hidden}
    count = sum(rank * (shape.hidden + widths[name]) for name in targets) * shape.layers
    adapter = Adapter(params=count, inputs=targets, dropout=True)
    frozen = NF4 if "qlora" in method else None
    return question_of(row, shape, replace(work, adapter=adapter, frozen_bytes=frozen))
