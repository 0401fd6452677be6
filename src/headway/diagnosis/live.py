"""What goes wrong while a run trains, found beside the supervisor and said with its cost and its cure.

It runs in the sampler: `python -m headway.diagnosis.live PARENT RUN_DIR [GPU,…]`. Whatever is wrong with it, or with a
file it reads, training continues. Nothing is said of a single pause: a checkpoint, a validation or a collection of
garbage is part of a healthy run, so every finder asks for what holds in each quarter of what it has seen.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from headway.diagnosis.live_loss import LossFinder
from headway.diagnosis.live_machine import MachineFinder, find_strangers
from headway.diagnosis.live_scene import Scene, SceneReader
from headway.diagnosis.live_steps import (
    find_missed_plan,
    find_slow_saving,
    find_starved,
    find_straggler,
    find_waiting,
)
from headway.telemetry import Event, RunDir
from headway.telemetry.device_findings import DeviceFindings
from headway.telemetry.open_findings import OpenFindings, Sighting
from headway.telemetry.sampler import main

_EVERY_S: Final = 5.0
"""Steps are looked at this often; the devices at every reading."""
_EXPLAINS_SLOWNESS: Final = frozenset(
    {"live/data-starved", "live/data-starved-cores", "live/straggler", "live/rank-waits", "live/save-share"}
    | {"devices/gpu-hot", "devices/gpu-brake", "devices/gpu-power-cap", "devices/gpu-silent"}
)


class Judgement:
    """From scenes to events; it reads nothing itself."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self._devices = DeviceFindings(dict(about))
        self._open = OpenFindings()
        self._loss, self._machine = LossFinder(), MachineFinder()

    def see_devices(self, reading: dict[str, Any], left_s: float | None) -> list[Event]:
        """Return the events of one reading of the devices."""
        return self._devices.take(reading, left_s)

    def see(self, scene: Scene) -> list[Event]:
        """Return the events that follow from how the run looks now."""
        return self._open.take(scene.now, list(self._find(scene)), scene.left_s)

    def close(self) -> list[Event]:
        """Return the events of the end of the run."""
        return [*self._devices.close(), *self._open.close()]

    def _find(self, scene: Scene) -> Iterator[Sighting]:
        finders: tuple[Callable[[Scene], Iterator[Sighting]], ...] = (
            find_starved,
            find_straggler,
            find_waiting,
            find_slow_saving,
            find_strangers,
            self._loss.find,
        )
        found = [one for find in finders for one in find(scene)]
        starved = {one.key for one in found if one.code.startswith("live/data-starved")}
        # Who waits for data is slow for that reason; said once.
        found = [one for one in found if one.code != "live/straggler" or one.key not in starved]
        codes = {one.code for one in found} | self._devices.codes() | self._open.codes()
        is_explained = bool(codes & _EXPLAINS_SLOWNESS)
        found += self._machine.find(scene, is_explained)
        found += [one for one in find_missed_plan(scene) if one.code != "live/plan-slow" or not is_explained]
        yield from found


class LiveFindings:
    """Follows a run directory beside the readings of its devices."""

    def __init__(self, run: RunDir, about: dict[str, Any]) -> None:
        self._reader, self._judgement = SceneReader(run, about), Judgement(about)
        self._next = 0.0
        self._failed = ""

    def take(self, reading: dict[str, Any], pids: Collection[int]) -> list[Event]:
        """Return the events that follow from a reading and from what the run has done since the last."""
        scene = self._reader.scene
        events = self._judgement.see_devices(reading, scene.left_s)
        now = time.monotonic()
        if now < self._next:
            return events
        self._next = now + _EVERY_S
        scene.reading, scene.pids = reading, pids
        try:
            self._reader.look(time.time(), time.monotonic_ns())
            return events + self._judgement.see(scene)
        except Exception as err:  # border: telemetry emit; what a file holds must not end the readings of the devices
            why = f"{type(err).__name__}: {err}"
            is_new, self._failed = why != self._failed, why
            return [*events, {"kind": "warning", "code": "live/failed", "facts": {"why": why}}] if is_new else events

    def close(self) -> list[Event]:
        """Return the events of the end of the run."""
        return self._judgement.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], LiveFindings))
