"""The tiny work as a Headway recipe."""

from __future__ import annotations

from headway.task import Recipe, Section


class TinySection(Section):
    """Size of the work."""

    width: int = 64
    """Hidden units."""
    samples: int = 4096
    """Training samples."""
    pause_s: float = 0.0
    """Seconds each step takes longer."""


RECIPE = Recipe(
    name="tiny",
    section=TinySection,
    task="tiny.task",
    defaults={
        "batch.per_device": 32,
        "train.steps": 100,
        "lr.base": 1e-3,
        "lr.schedule": "cosine",
        "parallel.gpus": 0,
        "eval.samples": 32,
    },
    train_samples=lambda section: section.samples,
)
