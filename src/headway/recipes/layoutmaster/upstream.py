"""LayoutMaster's own names for the weights, and what its train.py reads beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.task import Shape, Theirs, Upstream, fresh_optimizer

_LR, _DECAY, _MIN_LR, _EPOCHS = 4e-4, 0.01, 1e-6, 100


def rename(name: str, _: Shape) -> Theirs | None:
    """Return the published name; the backbone is in none of their files."""
    return Theirs(name=name.removeprefix("layout.")) if name.startswith("layout.") else None


def settings(shapes: Mapping[str, Shape], _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the sizes that a file tells; its weights belong to the published maths."""
    places, visual = shapes.get("position_embedding"), shapes.get("visual_projection.weight")
    if places is None or visual is None:
        return {}
    layers = {name.split(".")[1] for name in shapes if name.startswith("transformer_layers.")}
    return {
        "task.head_mode": "original",
        "task.max_elements": places[0],
        "task.hidden_dim": places[1],
        "task.visual_dim": visual[1],
        "task.num_layers": len(layers),
    }


def facts(described: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, Any]:
    """Return what `load_checkpoint` of train.py reads; a started optimizer's averages are not carried over."""
    config = described.get("config") or {}
    asked, epochs = config.get("optimizer", {}), config.get("training", {}).get("num_epochs") or _EPOCHS
    lr, epoch = asked.get("lr") or _LR, described.get("epoch") or 0
    optimizer = fresh_optimizer(len(names), lr=lr, weight_decay=asked.get("weight_decay") or _DECAY, initial_lr=lr)
    schedule = {
        "T_max": epochs,
        "eta_min": asked.get("min_lr") or _MIN_LR,
        "base_lrs": [lr],
        "last_epoch": epoch,
        "_step_count": epoch + 1,
        "_last_lr": [lr],
    }
    return {
        "epoch": epoch,
        "global_step": described.get("global_step") or 0,
        "optimizer_state_dict": optimizer,
        "scheduler_state_dict": schedule,
        "best_loss": described.get("best_loss"),
        "config": config,
        "is_multi_gpu": False,
    }


UPSTREAM = Upstream(rename=rename, settings=settings, part="model_state_dict", file="best_model.pth", facts=facts)
