"""nanochat's own files of weights: the names of this recipe, sizes in `meta_NNNNNN.json` beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.task import Shape, Theirs, Upstream


def rename(name: str, _: Shape) -> Theirs | None:
    """Return the same name."""
    return Theirs(name=name)


def settings(shapes: Mapping[str, Shape], facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return depth, widths, vocabulary and length that a file and its meta tell."""
    words, keys = shapes.get("transformer.wte.weight"), shapes.get("transformer.h.0.attn.c_k.weight")
    if words is None or keys is None:
        return {}
    depth = len({name.split(".")[2] for name in shapes if name.startswith("transformer.h.")})
    told: dict[str, Any] = {"task.depth": depth, "task.vocab_size": words[0]}
    if words[1] % depth == 0:
        told["task.aspect"] = words[1] // depth
    model = facts.get("model_config") or {}
    if not isinstance(model, Mapping):
        return told
    heads, groups, length = (model.get(name) for name in ("n_head", "n_kv_head", "sequence_len"))
    if isinstance(heads, int) and heads > 0 and words[1] % heads == 0:
        told["task.head_dim"] = words[1] // heads
        if isinstance(groups, int) and groups > 0:
            told["task.n_kv_head"] = groups
    if isinstance(length, int):
        told["task.max_seq_len"] = length
    return told


UPSTREAM = Upstream(rename=rename, settings=settings, unused=r"(cos|sin)")
