"""SwanLab: account and mode (`SWANLAB_MODE=local`) are the user's own."""

from __future__ import annotations

import os
from collections.abc import Sequence

import swanlab

from headway.bridges.track import About, Point, Tracker


class SwanLab:
    """An experiment of SwanLab."""

    def __init__(self, about: About) -> None:
        mode = os.environ.get("SWANLAB_MODE")
        self._run = swanlab.init(
            project=about.project,
            name=about.name,
            config=dict(about.config),
            log_dir=os.environ.get("SWANLAB_LOG_DIR") or str(about.run.root / "swanlog"),
            # Only its server knows an experiment again; a local one begins where the last one ended.
            **({"id": about.id, "resume": "allow"} if about.id and mode in (None, "online", "cloud") else {}),
            **({"mode": mode} if mode else {}),
        )
        self.id = str(getattr(self._run, "id", "") or "")

    def send(self, points: Sequence[Point]) -> None:
        """Log each step once."""
        for step, _, values in points:
            self._run.log(values, step=step)

    def finish(self, state: str) -> None:
        """Wait until everything is written."""
        swanlab.finish(state="success" if state in ("done", "stopped") else "crashed", error=None)


def start(about: About) -> Tracker:
    """Begin or continue an experiment."""
    return SwanLab(about)
