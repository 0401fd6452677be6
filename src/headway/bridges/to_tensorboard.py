"""TensorBoard, live: event files in the run directory, written by hand, so nothing needs to be installed."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from headway.bridges.track import About, Point, Tracker
from headway.telemetry import open_beneath
from headway.telemetry.tfevents import encode_first, encode_scalars

_FOLDER = "tensorboard"


class TensorBoard:
    """An event file per session; TensorBoard shows all of a folder as one run."""

    def __init__(self, about: About) -> None:
        folder = about.run.root / _FOLDER
        folder.mkdir(exist_ok=True)
        self.id = about.run.name
        now = time.time()
        name = f"events.out.tfevents.{int(now):010d}.{os.getpid()}.{about.run.name}"
        self._file = open(open_beneath(folder / name, os.O_WRONLY | os.O_APPEND), "ab")  # noqa: SIM115 - until finish
        self._file.write(encode_first(now))
        self._file.flush()

    def send(self, points: Sequence[Point]) -> None:
        """Write each step once."""
        self._file.write(b"".join(encode_scalars(*point) for point in points))
        self._file.flush()

    def finish(self, state: str) -> None:
        """Close the file."""
        self._file.close()


def start(about: About) -> Tracker:
    """Begin a file."""
    return TensorBoard(about)
