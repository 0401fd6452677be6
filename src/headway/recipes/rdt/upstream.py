"""RDT's own names for the weights: those of this recipe, in `pytorch_model.bin` or DeepSpeed's `module`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.task import Shape, Theirs, Upstream


def rename(name: str, _: Shape) -> Theirs | None:
    """Return the same name; the frozen picture encoder is in none of their files."""
    return None if name.startswith("vision_model.") else Theirs(name=name)


def settings(shapes: Mapping[str, Shape], facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the sizes that a file tells, and the norm its weights were trained with."""
    tokens, words = shapes.get("model.x_pos_embed"), shapes.get("model.lang_cond_pos_embed")
    head = shapes.get("model.blocks.0.attn.q_norm.weight")
    if tokens is None or words is None or head is None:
        return {}
    hidden = tokens[2]
    told: dict[str, Any] = {
        "task.hidden_size": hidden,
        "task.depth": len({name.split(".")[2] for name in shapes if name.startswith("model.blocks.")}),
        "task.num_heads": hidden // head[0],
        "task.action_chunk_size": tokens[1] - 3,
        "task.tokenizer_max_length": words[1],
    }
    own = facts.get("headway")
    if isinstance(own, Mapping):
        told["task.norm"] = "timm_var" if own.get("norm") == "timm_var" else "rms"
    elif "step" not in facts:  # our safetensors say their step: such a file may have either norm
        told["task.norm"] = "timm_var"
    for part in ("lang", "img", "state"):
        layers = [shape for name, shape in shapes.items() if name.startswith(f"{part}_adaptor.") and len(shape) == 2]
        told[f"task.{part}_adaptor"] = (
            "linear" if f"{part}_adaptor.weight" in shapes else f"mlp{max(1, len(layers))}x_gelu"
        )
        first = shapes.get(f"{part}_adaptor.weight") or shapes.get(f"{part}_adaptor.0.weight")
        if first is not None and part != "state":
            told[f"task.{part}_token_dim"] = first[1]
    return told


UPSTREAM = Upstream(rename=rename, settings=settings, file="pytorch_model.bin")
