"""`headway.log`: a step of your own script, told to the run around it. Standard library only."""

from __future__ import annotations

import sys


def log(
    *,
    step: int | None = None,
    loss: float | None = None,
    lr: float | None = None,
    grad_norm: float | None = None,
    samples: int | None = None,
) -> None:
    """Tell the run around this process where it is; `headway watch` and the report show it.

    Inside of `headway run` it writes the rank's metrics; everywhere else it does nothing. It never raises and never
    prints, so it may stay in the script.

    Args:
        step: steps finished; none: one more than the last time.
        loss: of this step; anything that `float` takes, a tensor too.
        lr: learning rate.
        grad_norm: norm of the gradients.
        samples: samples seen so far.
    """
    hook = sys.modules.get("_headway_hook")  # put there by the run, before the script began
    if hook is not None:
        hook.log(step, loss, lr, grad_norm, samples)
