"""Trackio: local by default (`TRACKIO_DIR`), or a Space of the user's own (`TRACKIO_SPACE_ID`)."""

from __future__ import annotations

import os
from collections.abc import Sequence

import trackio

from headway.bridges.track import About, Point, Tracker


class Trackio:
    """A run of Trackio."""

    def __init__(self, about: About) -> None:
        self._run = trackio.init(
            project=about.project,
            name=about.name,
            config=dict(about.config),
            resume="allow",
            space_id=os.environ.get("TRACKIO_SPACE_ID"),
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        self.id = about.name

    def send(self, points: Sequence[Point]) -> None:
        """Log each step once."""
        for step, _, values in points:
            trackio.log(values, step=step)

    def finish(self, state: str) -> None:
        """Wait until everything is written."""
        trackio.finish()


def start(about: About) -> Tracker:
    """Begin or continue a run."""
    return Trackio(about)
