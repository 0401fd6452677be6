"""What nanochat tells the control side: its section, its sizes, and the guide's own names for things."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.recipes.nanochat.data import baseline, count_train_samples
from headway.recipes.nanochat.section import NanochatSection, PredictOptions, horizon_steps
from headway.recipes.nanochat.upstream import UPSTREAM
from headway.task import Recipe

__all__ = ["RECIPE", "NanochatSection"]


def _published(*, depth: int, per_device: int, total_tokens: int, seq_len: int, **more: Any) -> dict[str, Any]:
    """Return one published size: real shards, 65,536 tokens, and 20 tokens per parameter."""
    section = NanochatSection(depth=depth, max_seq_len=seq_len)
    return {
        "task.depth": depth,
        "task.aspect": section.aspect,
        "task.head_dim": section.head_dim,
        "task.max_seq_len": seq_len,
        "task.vocab_size": section.vocab_size,
        "task.synthetic": False,
        "batch.per_device": per_device,
        "batch.total": total_tokens,
        "batch.unit": "tokens",
        "train.steps": horizon_steps(section, total_tokens=total_tokens),
        "eval.samples": None,
        # The original saves once, after days of work; 1,000 steps are some minutes of it.
        "save.every": 1000,
        **more,
    }


_PRESETS: Mapping[str, Mapping[str, Any]] = {
    "conservative": _published(
        depth=12,
        per_device=8,
        total_tokens=24_576,
        seq_len=1536,
        **{"task.eval_tokens": 10 * 24_576, "eval.every": 100},
    ),
    "balanced": _published(
        depth=16,
        per_device=12,
        total_tokens=49_152,
        seq_len=2048,
        **{"task.eval_tokens": 5 * 49_152, "eval.every": 100},
    ),
    "aggressive": _published(
        depth=20,
        per_device=14,
        total_tokens=86_016,
        seq_len=3072,
        **{"task.eval_tokens": 2 * 86_016, "eval.every": 100},
    ),
    "d20": _published(
        depth=20,
        per_device=32,
        total_tokens=524_288,
        seq_len=2048,
        **{"task.eval_tokens": 20 * 524_288, "eval.every": 250},
    ),
}

_DEFAULTS: Mapping[str, Any] = {
    # Learns something measurable in about a minute on two CPU ranks of one thread each.
    "task.depth": 4,
    "task.aspect": 32,
    "task.head_dim": 32,
    "task.max_seq_len": 128,
    "task.vocab_size": 512,
    "task.synthetic": True,
    # Only the micro-batch, so that any number of devices divides the batch.
    "batch.per_device": 8,
    "batch.unit": "tokens",
    # The three rates of the section are multiplied by this one, so 1 leaves them as published.
    "lr.base": 1.0,
    "lr.schedule": "linear",
    "lr.decay": 0.2,
    "lr.final": 0.0,
    "optimizer.name": "muon",
    "optimizer.beta1": 0.8,
    "optimizer.beta2": 0.95,
    "optimizer.eps": 1e-10,
    "optimizer.weight_decay": 0.0,
    "optimizer.clip": 1.0,
    "train.steps": 200,
    "eval.every": 50,
    "eval.samples": 256,
    "save.every": 50,
}

_ALIASES: Mapping[str, str] = {
    "depth": "task.depth",
    "aspect_ratio": "task.aspect",
    "head_dim": "task.head_dim",
    "n_kv_head": "task.n_kv_head",
    "max_seq_len": "task.max_seq_len",
    "vocab_size": "task.vocab_size",
    "data_dir": "task.data_dir",
    "device_batch_size": "batch.per_device",
    "total_batch_size": "batch.total",
    "num_iterations": "train.steps",
    "activation_checkpoint": "train.activation_checkpoint",
    "embedding_lr": "task.embedding_lr",
    "unembedding_lr": "task.unembedding_lr",
    "matrix_lr": "task.matrix_lr",
    "weight_decay": "optimizer.weight_decay",
    "grad_clip": "optimizer.clip",
    "warmdown_ratio": "lr.decay",
    "final_lr_frac": "lr.final",
    "eval_every": "eval.every",
    "eval_tokens": "task.eval_tokens",
    "save_every": "save.every",
    "model_tag": "name",
}

_IGNORED: Mapping[str, str] = {
    "warmup_ratio": "nanochat/ignored-warmup",
    "run": "nanochat/ignored-tracker",
    "use_dummy_wandb": "nanochat/ignored-tracker",
    "sample_every": "nanochat/ignored-sample",
    "core_metric_every": "nanochat/ignored-core",
    "core_metric_max_per_task": "nanochat/ignored-core",
    "max_per_task": "nanochat/ignored-core",
    "target_param_data_ratio": "nanochat/ignored-ratio",
    "target_flops": "nanochat/ignored-ratio",
    "resume_from_step": "nanochat/ignored-resume",
    "device_type": "nanochat/ignored-device",
}


def _shape(section: NanochatSection) -> dict[str, Any]:
    """Return the model in the words of the planner's decoder family."""
    return {
        "layers": section.depth,
        "hidden": section.width,
        "heads": section.n_head,
        "kv_heads": section.kv_heads,
        "vocab": section.vocab_size,
        "ffn": 4 * section.width,
        "mlp": "relu2",
        "norm": "layer",
        "qk_norm": True,
        "wide_rotary": True,
        "softcap": True,
        "logit_tokens": section.loss_chunk or None,
    }


RECIPE = Recipe(
    rate_key="matrix_lr",
    name="nanochat",
    section=NanochatSection,
    task="headway.recipes.nanochat.task",
    defaults=_DEFAULTS,
    presets=_PRESETS,
    aliases=_ALIASES,
    implied={"total_batch_size": {"batch.unit": "tokens"}},
    ignored=_IGNORED,
    tokens_per_sample=lambda section: section.max_seq_len,
    train_samples=count_train_samples,
    baselines=baseline,
    shape=_shape,
    predict=PredictOptions,
    prepare="headway.recipes.nanochat.data",
    preload=("headway.recipes.nanochat.task",),
    upstream=UPSTREAM,
)
