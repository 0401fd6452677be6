"""A recipe that learns a sine wave: small enough that a rehearsal of faults takes a minute."""

from headway.task import Count, Recipe, Section, Whole


class ToySection(Section):
    """What the rehearsal needs to know of a run."""

    samples: Count = 4096
    """Training samples."""
    pause_s: float = 0.02
    """Seconds that a loss takes longer, so that a fault has a step to hit."""
    hold_mb: Whole = 48
    """MiB of memory per sample of a micro-batch, so that memory can run out."""


RECIPE = Recipe(
    name="rehearsal",
    section=ToySection,
    task="task",
    defaults={
        "batch.per_device": 8,
        "train.steps": 1_000_000,
        "lr.base": 0.01,
        "parallel.gpus": 0,
        "parallel.cpus": 2,
        "parallel.threads": 1,
    },
    train_samples=lambda section: section.samples,
)
