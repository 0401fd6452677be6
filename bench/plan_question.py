"""A published training figure as the planner sees it: the record, and what every codebase's reading shares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from headway.planner.memory import MemoryForecast, weigh_decoder
from headway.planner.models.convnet import Tape
from headway.planner.models.decoder import Decoder
from headway.planner.models.known import find_decoder, nanochat
from headway.planner.step import Work

GIB = 1 << 30
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


def shape_of(row: Row) -> Decoder:
    """Return the shape the row states, filled in from the published one of that name."""
    name = row["model"]
    known = find_decoder(name)
    if "nanochat" in name:
        return nanochat(depth_of(row), vocab=row.get("vocab", 65536))
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
        ffn=row.get("ffn", _gated_width(hidden, megatron) if gated else 4 * hidden),
        mlp="swiglu" if gated else "gelu",
        norm="rms" if gated and not megatron else "layer",
        tied=(megatron and "untied" not in name) or "MPT" in name,
    )


def _gated_width(hidden: int, megatron: bool) -> int:
    """Return the width that gives a gated MLP as many weights as a plain one; Megatron rounds it down to 64."""
    return hidden * 8 // 3 // 64 * 64 if megatron else hidden * 8 // 3


def depth_of(row: Row) -> int:
    """Return the depth in a nanochat model's name: `nanochat d20`."""
    found = re.search(r"\bd(\d+)", row["model"])
    if found is None:
        raise InexpressibleError("depth not stated")
    return int(found[1])


def batch_of(row: Row) -> tuple[int, int]:
    """Return micro-batch and length, or say which is missing."""
    if "micro_batch" not in row:
        raise InexpressibleError("micro-batch not stated")
    if "seq_len" not in row:
        raise InexpressibleError("length of a sequence not stated")
    return row["micro_batch"], row["seq_len"]


def question_of(row: Row, shape: Decoder, work: Work) -> Question:
    """Return the forecast of a decoder's step."""
    forecast = weigh_decoder(shape, work, ranks=row.get("world_size", 1))
    return Question(forecast=forecast, family="decoder", shape=shape, work=work, params=shape.params)
