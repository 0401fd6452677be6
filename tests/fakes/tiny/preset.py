"""A recipe small enough for tests: a two-layer network that learns a random function."""

from __future__ import annotations

from headway.task import Recipe, Section


class TinySection(Section):
    """Size of the network and faults on demand."""

    width: int = 16
    """Hidden units."""
    samples: int = 97
    """Training samples; prime, so that no batch divides an epoch."""
    held_out: int = 33
    """Validation samples."""
    depth: int = 2
    """Hidden layers."""
    dropout: float = 0.1
    """Share of units dropped, so that generators matter."""
    ragged: bool = False
    """Give each sample its own weight count, so that batches differ in what they hold."""
    norm: bool = False
    """Add batch norm, so that there are buffers."""
    tied: bool = False
    """Give the second and third hidden layer the same weights."""
    nan_samples: tuple[int, ...] = ()
    """Training samples whose input is NaN."""
    fail_step: int = 0
    """Step at which rank `fail_rank` raises."""
    fail_rank: int = 1
    """Rank that raises."""
    hang_step: int = 0
    """Loss at which rank `fail_rank` sleeps forever, once."""
    gone_of: int = 0
    """Number of ranks with which rank `fail_rank` is killed in its first loss, as long as a file `gone` is there."""
    die_in: str = ""
    """`validation` or `trial`: rank `fail_rank` is killed in the first one of this kind, once."""
    oom_above: int = 0
    """Largest micro-batch rank `fail_rank` has memory for in its backward; 0: any."""
    hold_mb: int = 0
    """MiB each sample of a micro-batch takes while its loss is computed."""
    is_mean: bool = False
    """Return a mean over the micro-batch instead of a sum, as a careless recipe does."""
    sleep_s: float = 0.0
    """Seconds each loss takes longer."""
    eval_sleep_s: float = 0.0
    """Seconds each batch of a validation, and each trial, takes longer."""


RECIPE = Recipe(
    name="tiny",
    section=TinySection,
    task="tiny.task",
    task_mindspore="tiny.task_mindspore",
    defaults={
        "batch.per_device": 4,
        "train.steps": 20,
        "lr.base": 0.01,
        "parallel.gpus": 0,
    },
    train_samples=lambda section: section.samples,
)
