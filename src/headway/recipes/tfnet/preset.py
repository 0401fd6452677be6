"""What TFNet tells the control side: its section, its sizes, and the guide's own names for things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.recipes.tfnet.data import baseline, count_train_samples
from headway.recipes.tfnet.section import PredictOptions, TfnetSection, framework_of
from headway.recipes.tfnet.upstream import UPSTREAM
from headway.task import Recipe

__all__ = ["RECIPE", "TfnetSection"]

_PUBLISHED: Mapping[str, Any] = {
    "task.hidden_size": 1024,
    "task.channels": (64, 128, 256, 512),
    "task.blocks": (3, 4, 6, 3),
    "task.attention": (16, 64, 64, 64),
    "task.frame_size": 256,
    "task.crop_size": 224,
    "task.min_frames": 32,
    "task.max_frames": 230,
    "task.bucket": 4,
    "task.cache_bytes": 0,
    "task.synthetic": False,
    "task.decoder": "beam",
    "task.distill": "repaired",
    "task.thin_eval": False,
    "lr.base": 1e-4,
    "lr.schedule": "multistep",
    "lr.milestones": (35 / 55, 45 / 55),
    "lr.gamma": 0.2,
    "lr.warmup_samples": 0,
    "optimizer.name": "adam",
    "optimizer.weight_decay": 1e-4,
    "train.steps": None,
    "train.epochs": 55,
    "eval.every": 0,
    "eval.every_epochs": 1,
    "save.every": 0,
    "save.every_epochs": 1,
}

_PRESETS: Mapping[str, Mapping[str, Any]] = {
    # The sheet of the guide: one GPU, eight clips, gradients clipped.
    "gpu": {**_PUBLISHED, "batch.per_device": 8, "optimizer.clip": 1.0, "task.max_frames": 300, "task.bucket": 16},
    "original": {
        **_PUBLISHED,
        "batch.per_device": 2,
        "optimizer.clip": None,
        "task.distill": "original",
        "task.merge_equal": True,
    },
    "gpu_8gb": {**_PUBLISHED, "batch.per_device": 4, "optimizer.clip": 1.0, "task.max_frames": 300, "task.bucket": 16},
}

_DEFAULTS: Mapping[str, Any] = {
    # Learns to read the synthetic clips in about a minute (PyTorch) or a few (MindSpore) on two CPU cores.
    "task.synthetic": True,
    "task.frame_size": 36,
    "task.crop_size": 32,
    "task.min_frames": 20,
    "task.max_frames": 32,
    "task.bucket": 44,
    "task.channels": (16, 24, 32, 64),
    "task.blocks": (1, 1, 1, 1),
    "task.attention": (4, 8, 8, 8),
    "task.hidden_size": 64,
    # Over so few steps it only slows the heads down: a WER of 15.0 with it, of 1.7 without.
    "task.distill": "off",
    # Validation in graph mode compiles once for all clips.
    "task.thin_eval": True,
    "parallel.cpus": 1,
    "batch.per_device": 8,
    "lr.base": 3e-3,
    "lr.schedule": "multistep",
    "lr.milestones": (0.8, 0.9),
    "lr.gamma": 0.2,
    "lr.warmup_samples": 160,
    "optimizer.name": "adam",
    "optimizer.weight_decay": 1e-4,
    "optimizer.clip": 10.0,
    "train.steps": 160,
    "eval.every": 20,
    "save.every": 40,
}

_ALIASES: Mapping[str, str] = {
    "dataset.train_data_path": "task.train_data_path",
    "dataset.valid_data_path": "task.valid_data_path",
    "dataset.test_data_path": "task.test_data_path",
    "dataset.train_label_path": "task.train_label_path",
    "dataset.valid_label_path": "task.valid_label_path",
    "dataset.test_label_path": "task.test_label_path",
    "dataset.crop_size": "task.crop_size",
    "dataset.max_frames": "task.max_frames",
    "model.hidden_size": "task.hidden_size",
    "model.device_target": "task.device_target",
    "model.device_id": "task.device_id",
    "model.enable_graph_kernel": "task.graph_kernel",
    "model.enable_auto_mixed_precision": "task.amp_level",
    "model.force_pynative_mode": "task.force_pynative",
    "training.batch_size": "batch.per_device",
    "training.learning_rate": "lr.base",
    "training.num_epochs": "train.epochs",
    "training.num_workers": "parallel.workers",
    "training.weight_decay": "optimizer.weight_decay",
    "training.gradient_clip_norm": "optimizer.clip",
    "training.early_stopping_patience": "eval.patience",
    "training.save_interval": "save.every_epochs",
    "training.eval_interval": "eval.every_epochs",
    "training.prefetch_size": "task.prefetch",
    "training.enable_data_sink": "task.data_sink",
    "gpu_optimization.enable_graph_mode": "task.graph_mode",
    "gpu_optimization.max_device_memory": "task.max_device_memory",
    "gpu_optimization.mempool_block_size": "task.mempool_block_size",
    "gpu_optimization.enable_profiling": "task.profiling",
    "gpu_optimization.enable_dump": "task.dump",
    "gpu_optimization.enable_memory_offload": "task.memory_offload",
    "loss.kd_temperature": "task.kd_temperature",
    "loss.kd_weight": "task.kd_weight",
    "paths.output_dir": "out",
}

_IGNORED: Mapping[str, str] = {
    "dataset.name": "tfnet/ignored-name",
    "model.name": "tfnet/ignored-name",
    "model.enable_reduce_precision": "tfnet/ignored-precision",
    "training.max_rowsize": "tfnet/ignored-rowsize",
    "gpu_optimization.enable_mem_reuse": "tfnet/ignored-reuse",
    "loss.ctc_blank_id": "tfnet/ignored-ctc",
    "loss.ctc_reduction": "tfnet/ignored-ctc",
    "optimizer.type": "tfnet/ignored-optimizer",
    "optimizer.lr_scheduler": "tfnet/ignored-optimizer",
    "paths.checkpoint_dir": "tfnet/ignored-paths",
    "paths.log_dir": "tfnet/ignored-paths",
    "paths.best_model_path": "tfnet/ignored-paths",
    "paths.current_model_path": "tfnet/ignored-paths",
    "logging.level": "tfnet/ignored-logging",
    "logging.save_logs": "tfnet/ignored-logging",
    "logging.print_interval": "tfnet/ignored-logging",
}


def list_tunable(section: TfnetSection, device: str) -> dict[str, Sequence[bool | int | str]]:
    """Return what MindSpore's engine reads here and PyTorch's does not."""
    if section.framework != "mindspore":
        return {}
    found: dict[str, Sequence[bool | int | str]] = {}
    if not section.force_pynative and not section.data_sink:  # the device's own queue is read by a graph alone
        found["task.graph_mode"] = (True, False)
    if device != "cpu":  # half precision is emulated on a CPU
        found["task.amp_level"] = ("O0", "O2")
    if not section.data_sink:
        found["task.prefetch"] = (0, 2, 4)
    return found


RECIPE = Recipe(
    name="tfnet",
    section=TfnetSection,
    task="headway.recipes.tfnet.task",
    defaults=_DEFAULTS,
    presets=_PRESETS,
    aliases=_ALIASES,
    implied={
        "training.num_epochs": {"train.steps": None},
        "training.save_interval": {"save.every": 0},
        "training.eval_interval": {"eval.every": 0},
    },
    ignored=_IGNORED,
    train_samples=count_train_samples,
    baselines=baseline,
    predict=PredictOptions,
    prepare="headway.recipes.tfnet.data",
    framework=framework_of,
    tunable=list_tunable,
    task_mindspore="headway.recipes.tfnet.task_mindspore",
    upstream=UPSTREAM,
)
