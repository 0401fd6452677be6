"""Reads a published training figure as a question for the planner, or says why it cannot be asked.

Only what the row states, and what its codebase is known to do, goes in; the measured figures never do.
"""

from __future__ import annotations

from dataclasses import replace

from headway.machine.cards import find_model
from headway.planner.models.decoder import Decoder
from headway.planner.step import Work
from plan_question import GIB, InexpressibleError, Question, Row, batch_of, question_of, shape_of
from plan_rows_finetune import ask_litgpt, ask_torchtune
from plan_rows_peft import ask_peft
from plan_rows_pretrain import ask_megatron, ask_modded, ask_nanochat, ask_torchtitan


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
    if row.get("num_experts") and "Megatron" not in source:
        raise InexpressibleError("mixture of experts: where the tokens go sets the peak")
    shape = shape_of(row)
    if "litgpt" in source:
        return ask_litgpt(row, shape)
    if "peft" in source:
        return ask_peft(row, shape)
    if "torchtune" in source or ("pytorch/ao" in source and row["family"] == "llm-finetune"):
        return ask_torchtune(row, shape)
    if "torchtitan" in source:
        return ask_torchtitan(row, shape)
    if "Megatron" in source:
        return ask_megatron(row, shape)
    if "nanochat" in source or "nanochat" in row["model"]:
        return ask_nanochat(row)
    if "modded-nanogpt" in source:
        return ask_modded(row, shape)
    return _plain(row, shape)


def _plain(row: Row, shape: Decoder) -> Question:
    """A plain PyTorch script: weights and gradients as the precision says, AdamW."""
    batch, seq_len = batch_of(row)
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
        flash=_has_flash(row),
        # llm-foundry: flash attention of 2023, low-precision norms, and a cross entropy that overwrites its logits.
        older_attention="llm-foundry" in row["source"],
        fused_kernels="llm-foundry" in row["source"],
        loss="fused" if row.get("compile") or "llm-foundry" in row["source"] else "whole",
        cast_weights=mixed and shards == 1,
        bucket_bytes=4 if strategy.startswith("DDP") else 0,
    )
    if row.get("params") and not shape.more_params:
        shape = replace(shape, more_params=max(0, int(row["params"]) - shape.params))
    return question_of(row, shape, work)


def _has_flash(row: Row) -> bool:
    """Say whether flash attention runs on the row's card: it needs the units of Ampere."""
    model = find_model(str(row.get("gpu") or ""))
    return model is None or model.compute_capability is None or model.compute_capability >= (8, 0)


__all__ = ["GIB", "InexpressibleError", "Question", "Row", "ask", "measured_bytes"]
