"""What the original's checkpoints say about themselves beside the weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.recipes.layoutmaster.preset import RECIPE
from headway.task import RunConfig


def meta_json(config: RunConfig, step: int, measures: Mapping[str, float], num_train: int) -> dict[str, Any]:
    """Return epoch (from 0), step, loss and config in the guide's own words; weights never have a `module.` prefix."""
    total = config.batch.total
    return {
        "epoch": None if total is None else max(0, step * total - 1) // num_train,
        "global_step": step,
        "best_loss": measures.get("loss"),
        "mean_iou": measures.get("mean_iou"),
        "is_multi_gpu": False,
        "config": _guide_config(config),
    }


def _guide_config(config: RunConfig) -> dict[str, Any]:
    """Return the sections of config_data_action_head.json. Any: values of many types."""
    told: dict[str, Any] = {}
    for guide, key in RECIPE.aliases.items():
        section, _, name = guide.rpartition(".")
        if section or guide in ("backbone_path", "max_elements"):
            place = told.setdefault(section, {}) if section else told
            place[name] = _look_up(config, key)
    return told


def _look_up(config: RunConfig, key: str) -> Any:
    value: Any = config  # Any: sections first, then a plain value
    for part in key.split("."):
        value = getattr(value, part)
    return value
