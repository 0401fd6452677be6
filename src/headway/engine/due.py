"""When a validation or a checkpoint is due: by steps, or by passes over the data where a guide counts those."""

from __future__ import annotations

from headway.config import EvalConfig, SaveConfig
from headway.engine.progress import Progress


def is_due(wish: EvalConfig | SaveConfig, progress: Progress, batch: int, in_epoch: int) -> bool:
    """Whether it falls on the step that has just ended.

    An epoch that ends inside a step counts when the step does; so no remainder adds up over many epochs.

    Args:
        batch: samples of the step.
        in_epoch: samples of one pass over the training set.
    """
    if is_multiple(progress.step, wish.every):
        return True
    if wish.every_epochs is None:
        return False
    span = max(1, round(wish.every_epochs * in_epoch))
    return progress.position // span > (progress.position - batch) // span


def is_multiple(step: int, every: int) -> bool:
    """Whether so many steps have passed again; 0 never."""
    return every > 0 and step % every == 0
