"""The guide's own description of a checkpoint, `meta_{step:06d}.json` beside `model_{step:06d}.pt`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.recipes.nanochat.preset import RECIPE
from headway.recipes.nanochat.section import NanochatSection
from headway.task import RunConfig


def meta_json(config: RunConfig, step: int, measures: Mapping[str, float]) -> dict[str, Any]:
    """Return what nanochat's loader reads: the model's shape, and the run in the guide's own words."""
    task: NanochatSection = config.task
    return {
        "step": step,
        "val_bpb": measures.get("bpb"),
        "model_config": {
            "sequence_len": task.max_seq_len,
            "vocab_size": task.vocab_size,
            "n_layer": task.depth,
            "n_head": task.n_head,
            "n_kv_head": task.kv_heads,
            "n_embd": task.width,
        },
        "user_config": {guide: _look_up(config, key) for guide, key in RECIPE.aliases.items()},
        "device_batch_size": config.batch.per_device,
        "max_seq_len": task.max_seq_len,
    }


def _look_up(config: RunConfig, key: str) -> Any:
    value: Any = config  # Any: sections first, then a plain value
    for part in key.split("."):
        value = getattr(value, part)
    return value
