"""Section and defaults of the sized recipe."""

from __future__ import annotations

from headway.task import Recipe, Section


class SizedSection(Section):
    """How much state there is, and where the samples are."""

    state_mb: int = 100
    """Weights and both moments of AdamW together, in 10^6 bytes."""
    tensors: int = 12
    """Weights the bytes are dealt out over."""
    samples: int = 1000
    """Training samples."""
    files: str = ""
    """Folder with one file for each sample; empty: samples are made from their index."""


class PredictSection(Section):
    """What `headway predict` is asked."""

    row: int = 0
    """Row that is looked up."""


RECIPE = Recipe(
    name="sized",
    section=SizedSection,
    predict=PredictSection,
    task="sized.task",
    defaults={
        "batch.per_device": 4,
        "train.steps": 4,
        "lr.base": 0.001,
        "lr.schedule": "constant",
        "lr.warmup_steps": 0,
        "optimizer.name": "adamw",
        "parallel.gpus": 0,
    },
    train_samples=lambda section: section.samples,
)
