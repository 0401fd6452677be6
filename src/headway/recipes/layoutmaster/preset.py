"""What LayoutMaster tells the control side: its section, its sizes, and the guide's own names for things."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.recipes.layoutmaster.advice import advise
from headway.recipes.layoutmaster.data import baselines, count_train_samples
from headway.recipes.layoutmaster.section import QWEN, LayoutMasterSection, LossWeights, PredictOptions
from headway.recipes.layoutmaster.upstream import UPSTREAM
from headway.task import Recipe

__all__ = ["RECIPE", "LayoutMasterSection"]


def _published(**size: Any) -> dict[str, Any]:
    """Return a published size with the numbers of the guide: 32 posters per step over all GPUs, 100 epochs."""
    return {
        **{f"task.{key}": value for key, value in size.items()},
        "task.image_size": 224,
        "task.freeze_visual": True,
        "task.synthetic": False,
        "task.dropout": 0.1,
        "task.schedule_type": "linear",
        "task.trajectory_steps": 50,
        "batch.total": 32,
        "lr.base": 4e-4,
        "lr.final": 0.0025,
        "train.steps": None,
        "train.epochs": 100.0,
        "ema.decay": None,
        "eval.every": 0,
        "eval.every_epochs": 10,
        "save.every": 0,
        "save.every_epochs": 10,
    }


_PRESETS: Mapping[str, Mapping[str, Any]] = {
    "base": _published(hidden_dim=512, num_layers=12, visual_dim=768, visual_backbone="simple-cnn"),
    "large": _published(hidden_dim=2048, num_layers=32, visual_dim=1280, visual_backbone=QWEN),
}

_DEFAULTS: Mapping[str, Any] = {
    # Learns something measurable in about a minute on two CPU ranks of one thread each.
    "task.hidden_dim": 64,
    "task.num_layers": 2,
    "task.visual_backbone": "small",
    "task.visual_dim": 64,
    "task.image_size": 32,
    "task.freeze_visual": False,
    "task.dropout": 0.0,
    "task.synthetic": True,
    "task.trajectory_steps": 10,
    # The guide's batch is the total of all GPUs; each rank takes its share.
    "batch.total": 32,
    "lr.base": 2e-3,
    "lr.schedule": "cosine",
    "lr.final": 0.0025,
    "optimizer.weight_decay": 0.01,
    "train.steps": 300,
    "eval.every": 100,
    "save.every": 100,
}

_ALIASES: Mapping[str, str] = {
    "run_name": "name",
    "batch_size": "batch.total",
    "data.batch_size": "batch.total",
    "data.data_root": "task.data_dir",
    "data_root": "task.data_dir",
    "data.train_ratio": "task.train_ratio",
    "data.image_size": "task.image_size",
    "data.use_trajectory_dataset": "task.use_trajectory_dataset",
    **{
        f"model.{name}": f"task.{name}"
        for name in (
            "visual_backbone",
            "visual_dim",
            "hidden_dim",
            "num_layers",
            "num_heads",
            "max_elements",
            "dropout",
        )
    },
    "model.head_mode": "task.head_mode",
    "backbone_path": "task.backbone_path",
    "max_elements": "task.layer_scale",
    **{
        f"diffusion.{name}": f"task.{name}"
        for name in (
            "num_timesteps",
            "beta_start",
            "beta_end",
            "schedule_type",
            "prediction_type",
            "trajectory_steps",
        )
    },
    **{f"loss.{name}_weight": f"task.loss.{name}" for name in LossWeights.model_fields},
    "optimizer.lr": "lr.base",
    "optimizer.min_lr": "lr.min",
    "optimizer.betas": "task.betas",
    "optimizer.freeze_visual": "task.freeze_visual",
    "training.num_epochs": "train.epochs",
    "num_epochs": "train.epochs",
    "training.save_every": "save.every_epochs",
    # One process loads for all GPUs there, so its number is that of all ranks.
    "data.num_workers": "parallel.all_workers",
    "num_workers": "parallel.all_workers",
    "training.max_grad_norm": "optimizer.clip",
    "inference.num_steps": "task.num_steps",
}

_IGNORED: Mapping[str, str] = {
    "project_name": "layoutmaster/ignored-tracker",
    "use_swanlab": "layoutmaster/ignored-tracker",
    "device": "layoutmaster/ignored-device",
    "use_multi_gpu": "layoutmaster/ignored-multi-gpu",
    "training.save_dir": "layoutmaster/ignored-save-dir",
}


RECIPE = Recipe(
    name="layoutmaster",
    section=LayoutMasterSection,
    task="headway.recipes.layoutmaster.task",
    defaults=_DEFAULTS,
    presets=_PRESETS,
    aliases=_ALIASES,
    implied={
        "training.save_every": {"save.every": 0},
        # Whoever names a folder of posters means those, not synthetic ones made in it.
        "data.data_root": {"task.synthetic": False},
        "data_root": {"task.synthetic": False},
    },
    ignored=_IGNORED,
    train_samples=count_train_samples,
    baselines=baselines,
    advise=advise,
    predict=PredictOptions,
    prepare="headway.recipes.layoutmaster.data",
    preload=("headway.recipes.layoutmaster.task",),
    upstream=UPSTREAM,
)
