"""Weights & Biases: account, server and mode (`WANDB_MODE=offline`) are the user's own."""

from __future__ import annotations

import os
from collections.abc import Sequence

import wandb

from headway.bridges.track import About, Point, Tracker


class Wandb:
    """A run of wandb."""

    def __init__(self, about: About) -> None:
        # Where a key is missing it would ask on a terminal that is not there; the library then says what to do.
        self._run = wandb.init(
            project=about.project,
            name=about.name,
            id=about.id or about.run.name[:64],
            resume="allow",
            config=dict(about.config),
            dir=os.environ.get("WANDB_DIR") or str(about.run.root),
            settings=wandb.Settings(console="off", x_disable_stats=True, disable_git=True, save_code=False),
        )
        self._run.define_metric("val/*", step_metric="step")
        self.id = self._run.id

    def send(self, points: Sequence[Point]) -> None:
        """Log each step once; validations come under the step they were made at, which wandb's own may have passed."""
        for step, _, values in points:
            if any(name.startswith("val/") for name in values):
                self._run.log({**values, "step": step})
            else:
                self._run.log(values, step=step)

    def finish(self, state: str) -> None:
        """Wait until everything is written."""
        self._run.finish(exit_code=0 if state in ("done", "stopped") else 1)


def start(about: About) -> Tracker:
    """Begin or continue a run."""
    return Wandb(about)
