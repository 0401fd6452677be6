"""Rows of PEFT's method comparison as questions: each method by the tensors its forward keeps for backward.

PEFT puts adapters in fp32 beside a bf16 model, so a method that multiplies a linear's input by something trained keeps
that input once more in fp32 for each linear; one that builds a change of the whole matrix keeps the change; one that
scales what comes out keeps that. Queries and values are wrapped unless the method's config says otherwise.
"""

from __future__ import annotations

import re
from dataclasses import replace

from headway.planner.models.decoder import Decoder
from headway.planner.step import Adapter, Work
from plan_question import InexpressibleError, Question, Row, batch_of, question_of

LONGEST = 0.77
"""Share of the length limit that the longest batch but one of a hundred of MetaMathQA reaches: calibrated, its lengths
are not stated."""
_MLP = ("gate", "up", "down")
_INPUTS = {"inputs": ("q", "v"), "cast_bytes": 4.0}
_CHANGE = {**_INPUTS, "changed": ("q", "v"), "change_bytes": 4.0}
_OUTPUTS = {"outputs": ("q", "v"), "output_bytes": 4.0}
METHODS: tuple[tuple[str, dict[str, object]], ...] = (
    # Input and a second pass over the matrix: wavelets, a rectifier, blocks turned one after the other.
    (r"miss/.*bat|waveft|peanut|boft", {**_CHANGE, "change_bytes": 8.0}),
    (r"fourierft|loha|lokr|hira|frod", _CHANGE),
    # The norm of each changed row, and the plain output, which it scales.
    (r"lora/.*dora", {**_CHANGE, "outputs": ("q", "v"), "output_bytes": 2.0}),
    # The changed matrix itself, in the model's type, and its input once.
    (r"shira|glora", {"inputs": ("q",), "cast_bytes": 2.0, "changed": ("q", "v"), "change_bytes": 2.0}),
    # Trained vectors and sums that are small, or frozen matrices in front: nothing as wide as the stream stays.
    (r"adamss|beft|tinylora|psoft|miss", {"inputs": ()}),
    # Frozen random matrices: what they give is scaled, and so kept.
    (r"p?vera|deft/.*para", {**_OUTPUTS, "inputs": ()}),
    (r"deft", {**_INPUTS, **_OUTPUTS}),
    (r"road", {**_OUTPUTS, "inputs": (), "output_bytes": 8.0}),
    (r"(lora|lily)/.*mlp", {"inputs": _MLP, "cast_bytes": 4.0}),
    (r"ia3/.*all", {"inputs": _MLP, "cast_bytes": 4.0, "outputs": ("q", "k", "v", "o"), "output_bytes": 2.0}),
    (r"ia3", {"inputs": ("down",), "cast_bytes": 4.0, "outputs": ("k", "v"), "output_bytes": 2.0}),
    (r"ln_tuning", {"inputs": (), "norms": True}),
    (r"prefixtuning|prompt_tuning|ptuning|trainable_tokens", {"inputs": ()}),
    # LoRA and everything else that multiplies its input.
    (r"", _INPUTS),
)
"""How a method's name starts, to what an `Adapter` of it keeps; the first that matches decides."""


def ask_peft(row: Row, shape: Decoder) -> Question:
    """transformers with PEFT: bf16 base, fp32 adapters, whole fp32 logits, batches of many lengths."""
    batch, limit = batch_of(row)
    method = str(row["method"])
    if method.startswith("osf"):
        raise InexpressibleError("weights split into singular vectors: no formula")
    # Padding needs a mask, and with one keys and values are copied out to every head; the output holds its logits.
    shape = replace(shape, expand_kv=True)
    work = Work(
        micro_batch=batch,
        seq_len=round(LONGEST * limit) + _virtual_tokens(row, shape, method),
        weight_bytes=2,
        grad_bytes=2,
        state_bytes=4,
        loss="whole",
        logit_copies=2.0,
    )
    if row["trainable_params"] < 0.5 * row["params"]:
        kept = next(kept for name, kept in METHODS if re.match(name, method))
        adapter = Adapter(params=row["trainable_params"], dropout=False, **kept)  # type: ignore[arg-type]  # a table
        work = replace(work, grad_bytes=4, state_bytes=8, adapter=adapter)
    return question_of(row, shape, work)


def _virtual_tokens(row: Row, shape: Decoder, method: str) -> int:
    """Return the trained tokens in front of each sample; those of `ptuning` are made by a network of their own."""
    if method.startswith("prompt_tuning"):
        return int(row["trainable_params"]) // shape.hidden
    return 20 if method.startswith("ptuning") else 0
