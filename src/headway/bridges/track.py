"""The child that feeds one tracker: it reads the run directory from where the tracker is, and ends when it is told to.

Rank 0's numbers only. A step goes to a tracker once: after a resume, and for steps that are done again, the numbers it
already has stay. What is about to be sent is noted first, so that a kill loses at most one batch, and doubles none.
`python -m headway.bridges.track PARENT TRACKER RUN`
"""

from __future__ import annotations

import importlib
import math
import select
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from headway.bridges.notes import write_note
from headway.bridges.settings import read_settings
from headway.bridges.track_state import FOLDER, read_state, write_state
from headway.config import flatten
from headway.process import die_with_parent, name_process
from headway.telemetry import RunDir, last_end, number, read_events, read_record, section, whole
from headway.telemetry.lines import read_objects

_POLL_S: Final = 1.0
_BATCH: Final = 200
"""Steps sent between two notes of how far the tracker is."""
_NAMES: Final = {"loss": "train/loss", "lr": "train/lr", "grad_norm": "train/grad_norm", "samples": "train/samples"}
_TIMES: Final = {"dt": "time/step", "data": "time/data", "mem": "memory"}

Point = tuple[int, float, dict[str, float]]
"""Step, unix seconds, name to value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a tracker is told about the run."""

    run: RunDir
    project: str
    name: str
    id: str | None
    """What this tracker called the run before; none: it is new."""
    config: Mapping[str, Any]
    """Flat, no secrets. Any: values of a config."""


class Tracker(Protocol):
    """One tracker's library."""

    id: str

    def send(self, points: Sequence[Point]) -> None:
        """Take some points, in the order of their steps."""
        ...

    def finish(self, state: str) -> None:
        """Write everything out; `state` is how the run ended."""
        ...


class Track:
    """Follows one run for one tracker."""

    def __init__(self, run: RunDir, name: str, tracker: Tracker) -> None:
        self._run, self._name, self._tracker = run, name, tracker
        self._state = read_state(run, name)
        self._state.id = tracker.id
        self._rows_at = self._events_at = 0
        write_state(run, name, self._state)

    def catch_up(self) -> None:
        """Send what is new."""
        rows, self._rows_at = read_objects(self._run.metrics(0), self._rows_at)
        events, self._events_at = read_objects(self._run.events, self._events_at)
        points = [point for row in rows if (point := step_point(row)) is not None and point[2]]
        self._send(points, "step")
        self._send([point for event in events if (point := validation_point(event)) is not None], "validation")

    def _send(self, points: list[Point], mark: str) -> None:
        """Send the points whose steps the tracker has not, and note how far it is before it gets them."""
        reach = getattr(self._state, mark)
        new: list[Point] = []
        for point in points:
            if point[0] > reach:
                reach = point[0]
                new.append(point)
        for begin in range(0, len(new), _BATCH):
            batch = new[begin : begin + _BATCH]
            setattr(self._state, mark, batch[-1][0])
            write_state(self._run, self._name, self._state)
            self._tracker.send(batch)


def step_point(row: Mapping[str, Any]) -> Point | None:
    """Return what a line of metrics tells a tracker. Any: as read."""
    step = whole(row.get("step"))
    if step is None:
        return None
    values = {tag: number(row.get(name)) for name, tag in (_NAMES | _TIMES).items() if row.get(name) is not None}
    return step, number(row.get("t")), {tag: value for tag, value in values.items() if not math.isnan(value)}


def validation_point(event: Mapping[str, Any]) -> Point | None:
    """Return what a validation tells a tracker. Any: as read."""
    step = whole(event.get("step"))
    if event.get("kind") != "validation" or step is None:
        return None
    values = {f"val/{name}": number(value) for name, value in section(event.get("measures")).items()}
    return step, number(event.get("t")), {tag: value for tag, value in values.items() if not math.isnan(value)}


def read_about(run: RunDir, name: str) -> About:
    """Return what a tracker is told about a run."""
    settings, job = read_settings(run).track, read_record(run.job)
    config = {key: value for key, value in flatten(section(job.get("config"))).items() if not key.startswith("alert.")}
    return About(
        run=run,
        project=settings.project,
        name=settings.name or run.name,
        id=read_state(run, name).id,
        config={
            key: value if isinstance(value, str | int | float | bool) else str(value) for key, value in config.items()
        },
    )


def main(argv: Sequence[str]) -> int:
    """Feed one tracker until the standard input is closed."""
    parent, name, place = argv
    die_with_parent(int(parent))
    name_process(f"headway-{name}"[:15])
    run = RunDir(Path(place))
    log = str(run.root / FOLDER / f"{name}.log")
    try:
        module = importlib.import_module(f"headway.bridges.to_{name}")
        tracker: Tracker = module.start(read_about(run, name))
    except ModuleNotFoundError as err:
        package = (err.name or name).partition(".")[0]
        write_note(run, "trouble", code="alert/tracker-missing", facts={"tracker": package, "python": sys.executable})
        return 3
    except BaseException as err:  # border: whatever a library does on its way up is its trouble, not the run's
        return _fail(run, name, err, log)
    try:
        track = Track(run, name, tracker)
        while not _is_told_to_end():
            track.catch_up()
        track.catch_up()
        end = last_end(read_events(run.events))
        tracker.finish(str(end.get("state")) if end is not None else "lost")
    except BaseException as err:  # border: as above
        return _fail(run, name, err, log)
    return 0


def _is_told_to_end() -> bool:
    ready, _, _ = select.select([sys.stdin.fileno()], [], [], _POLL_S)
    return bool(ready)


def _fail(run: RunDir, name: str, err: BaseException, log: str) -> int:
    traceback.print_exception(err)
    why = f"{type(err).__name__}: {str(err).partition(chr(10))[0]}"[:300]
    write_note(run, "trouble", code="alert/tracker-failed", facts={"tracker": name, "why": why, "log": log})
    return 4


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
