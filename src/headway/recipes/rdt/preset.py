"""What RDT tells the control side: its section, its sizes, and the published names for things."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.recipes.rdt.advice import advise
from headway.recipes.rdt.data import baseline, count_train_samples
from headway.recipes.rdt.section import PredictOptions, RdtSection
from headway.recipes.rdt.upstream import UPSTREAM
from headway.task import Recipe

__all__ = ["RECIPE", "RdtSection"]

_SIZES = (
    "action_chunk_size",
    "num_cameras",
    "img_patches",
    "img_token_dim",
    "img_history_size",
    "tokenizer_max_length",
    "lang_token_dim",
)
"""The section's own values of these are the published ones; the default run has smaller ones."""

_PUBLISHED: Mapping[str, Any] = {
    **{f"task.{key}": RdtSection.model_fields[key].default for key in _SIZES},
    "task.num_heads": 32,
    "task.cond_mask_prob": 0.1,
    "task.state_noise_snr": 40.0,
    "task.synthetic": False,
    "task.sample.batch": 16,
    "task.sample.batches": 2,
    "task.sample.memory_gib": 4.0,
    "task.rollout.exec_horizon": 16,
    "task.rollout.max_steps": 600,
    "task.rollout.env_horizon": 1000,
    "lr.base": 1e-4,
    "lr.schedule": "constant",
    # The published schedule has none; the small default has.
    "lr.warmup_samples": 0,
    "optimizer.beta2": 0.999,
    "optimizer.weight_decay": 1e-2,
    "train.precision": "bf16",
    "train.steps": 20_000,
    "eval.every": 500,
    "eval.samples": 256,
    "eval.trial_every": 500,
    "save.every": 1000,
    "ema.decay": 0.9999,
}

_PRESETS: Mapping[str, Mapping[str, Any]] = {
    "rdt-1b": {**_PUBLISHED, "task.hidden_size": 2048, "task.depth": 28, "batch.per_device": 8},
    "rdt-170m": {**_PUBLISHED, "task.hidden_size": 1024, "task.depth": 14, "batch.per_device": 8},
    # The 2-GPU guide: 16 over both GPUs, 8 on each.
    "guide-2gpu": {
        **_PUBLISHED,
        "task.hidden_size": 2048,
        "task.depth": 28,
        "batch.per_device": None,
        "batch.all_devices": 16,
        "parallel.workers": 4,
    },
}

_DEFAULTS: Mapping[str, Any] = {
    # Learns two scripted tasks in under a minute on two quiet CPU cores.
    "task.hidden_size": 64,
    "task.depth": 2,
    "task.num_heads": 4,
    "task.action_chunk_size": 16,
    "task.num_cameras": 2,
    "task.img_history_size": 1,
    "task.img_patches": 16,
    "task.img_token_dim": 64,
    "task.tokenizer_max_length": 32,
    "task.lang_token_dim": 64,
    "task.cond_mask_prob": 0.02,
    "task.state_noise_snr": 40.0,
    "task.synthetic": True,
    "task.sample.batch": 64,
    "task.sample.batches": 4,
    "task.rollout.episodes": 20,
    "task.rollout.exec_horizon": 4,
    # Only the micro-batch, so that any number of devices divides the batch.
    "batch.per_device": 32,
    "lr.base": 7e-3,
    "lr.schedule": "linear",
    "lr.decay": 0.6,
    "lr.warmup_samples": 1600,
    "optimizer.beta2": 0.95,
    "optimizer.weight_decay": 1e-2,
    "train.steps": 1000,
    "eval.every": 250,
    "eval.samples": 256,
    "save.every": 250,
    "ema.decay": 0.9999,
    "ema.power": 0.75,
}

_ALIASES: Mapping[str, str] = {
    # main.py
    "pretrained_text_encoder_name_or_path": "task.text_encoder",
    "pretrained_vision_encoder_name_or_path": "task.vision_encoder",
    "pretrained_model_name_or_path": "task.pretrained",
    "output_dir": "out",
    "train_batch_size": "batch.all_devices",
    "gradient_accumulation_steps": "batch.accumulation",
    "sample_batch_size": "task.sample.batch",
    "num_sample_batches": "task.sample.batches",
    "num_train_epochs": "train.epochs",
    "max_train_steps": "train.steps",
    "checkpointing_period": "save.every",
    "checkpoints_total_limit": "save.keep_last",
    "sample_period": "eval.trial_every",
    "learning_rate": "lr.base",
    "lr_scheduler": "lr.schedule",
    "lr_warmup_steps": "lr.warmup_steps",
    "adam_beta1": "optimizer.beta1",
    "adam_beta2": "optimizer.beta2",
    "adam_weight_decay": "optimizer.weight_decay",
    "adam_epsilon": "optimizer.eps",
    "max_grad_norm": "optimizer.clip",
    "mixed_precision": "train.precision",
    "dataloader_num_workers": "parallel.workers",
    # eval_rdt_libero.py
    "exec_horizon": "task.rollout.exec_horizon",
    "record_video": "task.rollout.record_video",
    "video_output_dir": "task.rollout.video_dir",
    # configs/base.yaml
    "common.img_history_size": "task.img_history_size",
    "common.action_chunk_size": "task.action_chunk_size",
    "common.num_cameras": "task.num_cameras",
    "dataset.tokenizer_max_length": "task.tokenizer_max_length",
    "model.lang_adaptor": "task.lang_adaptor",
    "model.img_adaptor": "task.img_adaptor",
    "model.state_adaptor": "task.state_adaptor",
    "model.lang_token_dim": "task.lang_token_dim",
    "model.img_token_dim": "task.img_token_dim",
    "model.rdt.hidden_size": "task.hidden_size",
    "model.rdt.depth": "task.depth",
    "model.rdt.num_heads": "task.num_heads",
    "model.noise_scheduler.num_train_timesteps": "task.num_train_timesteps",
    "model.noise_scheduler.num_inference_timesteps": "task.sample.steps",
    "model.ema.update_after_step": "ema.update_after",
    "model.ema.inv_gamma": "ema.inv_gamma",
    "model.ema.power": "ema.power",
    "model.ema.min_value": "ema.min",
    "model.ema.max_value": "ema.decay",
}

_IGNORED: Mapping[str, str] = {
    "config_path": "rdt/ignored-config",
    "deepspeed": "rdt/ignored-deepspeed",
    "load_from_hdf5": "rdt/ignored-hdf5",
    "dataset_type": "rdt/ignored-hdf5",
    "precomp_lang_embed": "rdt/ignored-lang-embed",
    "resume_from_checkpoint": "rdt/ignored-resume",
    "scale_lr": "rdt/ignored-scale-lr",
    "lr_num_cycles": "rdt/ignored-schedule",
    "lr_power": "rdt/ignored-schedule",
    "use_8bit_adam": "rdt/ignored-8bit",
    "alpha": "rdt/ignored-unused",
    "set_grads_to_none": "rdt/ignored-unused",
    "allow_tf32": "rdt/ignored-unused",
    "report_to": "rdt/ignored-tracker",
    "logging_dir": "rdt/ignored-tracker",
    "push_to_hub": "rdt/ignored-tracker",
    "hub_token": "rdt/ignored-tracker",
    "hub_model_id": "rdt/ignored-tracker",
    "common.state_dim": "rdt/ignored-fixed",
    "model.state_token_dim": "rdt/ignored-fixed",
    "model.rdt.cond_pos_embed_type": "rdt/ignored-fixed",
    "model.noise_scheduler.type": "rdt/ignored-fixed",
    "model.noise_scheduler.beta_schedule": "rdt/ignored-fixed",
    "model.noise_scheduler.prediction_type": "rdt/ignored-fixed",
    "model.noise_scheduler.clip_sample": "rdt/ignored-fixed",
    "dataset.buf_path": "rdt/ignored-buffer",
    "dataset.buf_num_chunks": "rdt/ignored-buffer",
    "dataset.buf_chunk_size": "rdt/ignored-buffer",
    "dataset.epsd_len_thresh_low": "rdt/ignored-buffer",
    "dataset.epsd_len_thresh_high": "rdt/ignored-buffer",
    "dataset.image_aspect_ratio": "rdt/ignored-fixed",
    "dataset.auto_adjust_image_brightness": "rdt/ignored-buffer",
    "dataset.epsd_len_threshold": "rdt/ignored-buffer",
}

RECIPE = Recipe(
    name="rdt",
    section=RdtSection,
    task="headway.recipes.rdt.task",
    defaults=_DEFAULTS,
    presets=_PRESETS,
    aliases=_ALIASES,
    ignored=_IGNORED,
    train_samples=count_train_samples,
    baselines=baseline,
    advise=advise,
    predict=PredictOptions,
    prepare="headway.recipes.rdt.data",
    preload=("headway.recipes.rdt.task",),
    upstream=UPSTREAM,
)
