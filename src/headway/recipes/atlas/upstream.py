"""Atlas's own names for the weights, and what its trainer reads beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from headway.task import Shape, Theirs, Upstream, fresh_optimizer

_RULES: tuple[tuple[str, str], ...] = (
    (r"vision\.(.+)", r"vggt.\1"),
    (r"language\.model\.(.+)", r"lang_encoder.\1"),
    (r"geometry\.token_proj\.(.+)", r"geom_encoder.token_pooler.\1"),
    (r"geometry\.pose_proj\.(.+)", r"geom_encoder.pose_encoder.\1"),
    (r"geometry\.out\.(.+)", r"geom_encoder.final_proj.\1"),
    (r"geometry\.token_query", r"geom_encoder.token_query"),
    (r"fusion\.(lang_proj|geom_proj)\.(.+)", r"fusion.\1.\2"),
    (r"fusion\.norm\.(.+)", r"fusion.output_norm.\1"),
    (r"fusion\.out\.(.+)", r"fusion.output_proj.\1"),
    (r"fusion\.layers\.(\d+)\.self_norm\.(.+)", r"fusion.cross_attn_layers.\1.norm1.\2"),
    (r"fusion\.layers\.(\d+)\.cross_norm\.(.+)", r"fusion.cross_attn_layers.\1.norm2.\2"),
    (r"fusion\.layers\.(\d+)\.mlp_norm\.(.+)", r"fusion.cross_attn_layers.\1.norm3.\2"),
    (r"fusion\.layers\.(\d+)\.self_attn\.(.+)", r"fusion.cross_attn_layers.\1.self_attn.\2"),
    (r"fusion\.layers\.(\d+)\.cross_attn\.(.+)", r"fusion.cross_attn_layers.\1.multihead_attn.\2"),
    (r"fusion\.layers\.(\d+)\.mlp\.0\.(.+)", r"fusion.cross_attn_layers.\1.linear1.\2"),
    (r"fusion\.layers\.(\d+)\.mlp\.3\.(.+)", r"fusion.cross_attn_layers.\1.linear2.\2"),
    (r"head\.trunk\.(.+)", r"action_head.shared_layers.\1"),
    (r"head\.(pose|gripper)\.(.+)", r"action_head.\1_head.\2"),
)


def rename(name: str, shape: Shape) -> Theirs | None:
    """Return the published name; statistics of whitened features are ours alone."""
    if match := re.fullmatch(r"geometry\.pointnet\.(conv|norm)s\.(\d+)\.(.+)", name):
        kind, place, leaf = match.groups()
        return Theirs(name=f"geom_encoder.pointnet.{'bn' if kind == 'norm' else 'conv'}{int(place) + 1}.{leaf}")
    for ours, theirs in _RULES:
        if re.fullmatch(ours, name):
            deep = (1, 1, *shape) if name == "geometry.token_query" else None
            return Theirs(name=re.sub(ours, theirs, name), shape=deep)
    return None


def settings(shapes: Mapping[str, Shape], _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the sizes of the trained part that a file tells."""
    pooler, words = shapes.get("geom_encoder.token_pooler.0.weight"), shapes.get("fusion.lang_proj.0.weight")
    views, trunk = shapes.get("fusion.geom_proj.0.weight"), shapes.get("action_head.shared_layers.0.weight")
    if pooler is None or words is None or views is None or trunk is None:
        return {}
    layers = {name.split(".")[2] for name in shapes if name.startswith("fusion.cross_attn_layers.")}
    pose = shapes.get("geom_encoder.pose_encoder.0.weight")
    points = [shapes.get(f"geom_encoder.pointnet.conv{place}.weight") for place in (1, 2, 3)]
    told = {
        "task.mode": "original",
        "task.vision_features": pooler[0],
        "task.geom_output_dim": views[1],
        "task.fusion_hidden_dim": words[0],
        "task.lang_dim": words[1],
        "task.fusion_layers": len(layers),
        "task.head_dims": [trunk[0], shapes["action_head.shared_layers.4.weight"][0]],
        "task.use_pose": pose is not None,
        "task.use_pointnet": points[0] is not None,
    }
    if pose is not None:
        told["task.pose_features"] = pose[0]
    if all(points):
        told["task.point_features"] = [point[0] for point in points if point is not None]
    return told


def facts(described: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, Any]:
    """Return what the trainer's `load_checkpoint` reads; a started optimizer's averages are not carried over."""
    step = described.get("global_step") or 0
    params = [name for name in names if not re.search(r"running_(mean|var)$|num_batches_tracked$", name)]
    loss = described.get("best_val_loss")
    return {
        "epoch": 0,
        "global_step": step,
        "optimizer_state_dict": fresh_optimizer(len(params), lr=1e-4, weight_decay=0.01, initial_lr=1e-4),
        "scheduler_state_dict": {"last_epoch": step, "_step_count": step + 1, "_last_lr": [1e-4], "base_lrs": [1e-4]},
        "scaler_state_dict": {},
        "best_val_loss": loss if loss is not None else 1e30,
    }


UPSTREAM = Upstream(
    rename=rename,
    # Frozen encoders are in their files too; here they come from files of their own.
    unused=r"(vggt|lang_encoder)\..*",
    settings=settings,
    part="model_state_dict",
    file="best_model.pt",
    facts=facts,
)
