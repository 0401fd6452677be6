"""What Atlas tells the control side: its section, its sizes, and the guide's own names for things."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.recipes.atlas.advice import GUIDE_BATCH, advise
from headway.recipes.atlas.data import baseline, count_train_samples
from headway.recipes.atlas.section import AtlasSection, PredictOptions
from headway.recipes.atlas.upstream import UPSTREAM
from headway.task import Recipe

__all__ = ["RECIPE", "AtlasSection"]

_SMALL: Mapping[str, Any] = {
    # Learns to reach the named block in about a minute on two CPU ranks of one thread each.
    "task.builtin_encoders": True,
    "task.synthetic": True,
    "task.val_share": 0.15,
    "task.image_size": 48,
    "task.vggt_patch": 8,
    "task.vggt_width": 64,
    "task.vggt_heads": 4,
    "task.vggt_vit_depth": 1,
    "task.vggt_depth": 2,
    "task.vggt_dense_width": 8,
    "task.point_stride": 8,
    "task.lang_dim": 64,
    "task.lang_max_length": 32,
    "task.vision_features": 128,
    "task.point_features": [16, 32, 64],
    "task.pose_features": 16,
    "task.geom_output_dim": 128,
    "task.fusion_hidden_dim": 64,
    "task.fusion_layers": 2,
    "task.fusion_heads": 4,
    "task.head_dims": [128, 128],
    "task.dropout": 0.0,
    "task.whiten": True,
    "task.pose_loss_type": "l1",
    # With l1 the likelier answer is right at once, and "closed" is never tried.
    "task.gripper_loss_type": "bce",
}

_DEFAULTS: Mapping[str, Any] = {
    **_SMALL,
    # Only the micro-batch, so that any number of devices divides the batch.
    "batch.per_device": 32,
    "lr.base": 8e-4,
    "lr.base_batch": 64,
    "lr.scaling": "linear",
    "lr.schedule": "cosine",
    "lr.warmup_samples": 1920,
    "optimizer.weight_decay": 0.01,
    "optimizer.clip": 1.0,
    "train.steps": 800,
    "eval.every": 200,
    "save.every": 200,
}

_PUBLISHED: Mapping[str, Any] = {
    **{key: AtlasSection.model_fields[key.partition(".")[2]].default for key in _SMALL},
    "task.vggt_checkpoint": "facebook/VGGT-1B",
    "task.lang_encoder_name": "meta-llama/Meta-Llama-3-8B",
    "batch.per_device": GUIDE_BATCH,
    "lr.base": 1e-4,
    "lr.base_batch": GUIDE_BATCH,
    "lr.warmup_steps": 1000,
    "train.steps": None,
    "train.epochs": 50,
    "parallel.workers": 4,
    "eval.every": 1000,
    "save.every": 5000,
}

_ALIASES: Mapping[str, str] = {
    "data.batch_size": "batch.per_device",
    "data.data_dir": "task.data_dir",
    "data.image_size": "task.image_size",
    "data.num_workers": "parallel.workers",
    "data.train_split": "task.train_split",
    "data.use_wrist_camera": "task.use_wrist_camera",
    "data.val_split": "task.val_split",
    "training.num_epochs": "train.epochs",
    "training.max_steps": "train.steps",
    "training.learning_rate": "lr.base",
    "training.lr_scaling": "lr.scaling",
    "training.weight_decay": "optimizer.weight_decay",
    "training.warmup_steps": "lr.warmup_steps",
    "training.gradient_accumulation_steps": "batch.accumulation",
    "training.val_interval": "eval.every",
    "training.save_interval": "save.every",
    **{
        f"training.loss.{key}": f"task.{key}"
        for key in ("pose_weight", "gripper_weight", "pose_loss_type", "gripper_loss_type")
    },
    **{
        f"model.{key}": f"task.{key}"
        for key in (
            *("vggt_checkpoint", "lang_encoder_name", "freeze_vggt", "freeze_lang_encoder", "geom_output_dim"),
            *("fusion_hidden_dim", "use_pointnet", "use_pose"),
        )
    },
    "checkpoint.save_dir": "out",
}

_IGNORED: Mapping[str, str] = {
    **{
        f"data.{key}": "atlas/ignored-hub"
        for key in ("use_huggingface", "hf_dataset_name", "streaming", "hf_cache_dir")
    },
    "huggingface.token": "atlas/ignored-hub",
    **{
        f"data.{key}": "atlas/ignored-later"
        for key in ("num_temporal_frames", "temporal_stride", "normalize_actions", "action_stats_path")
    },
    **{
        f"model.{key}": "atlas/ignored-later"
        for key in ("use_quaternion", "use_diffusion_head", "use_attention_pooling", "action_dim")
    },
    "training.log_interval": "atlas/ignored-log",
    **{f"logging.{key}": "atlas/ignored-log" for key in ("save_to_file", "log_file", "log_dir", "console_output")},
    **{
        f"wandb.{key}": "atlas/ignored-tracker"
        for key in ("enabled", "project", "entity", "name", "tags", "notes", "save_code", "resume")
    },
    "checkpoint.resume_from": "atlas/ignored-resume",
}

RECIPE = Recipe(
    name="atlas",
    section=AtlasSection,
    task="headway.recipes.atlas.task",
    defaults=_DEFAULTS,
    presets={"published": _PUBLISHED},
    aliases=_ALIASES,
    # The guide's rate is that of one GPU and grows with the batch; without this a small default would be its base.
    implied={"training.learning_rate": {"lr.base_batch": GUIDE_BATCH, "lr.scaling": "linear"}},
    ignored=_IGNORED,
    train_samples=count_train_samples,
    baselines=baseline,
    advise=advise,
    predict=PredictOptions,
    prepare="headway.recipes.atlas.data",
    preload=("headway.recipes.atlas.task",),
    upstream=UPSTREAM,
)
