"""What a run looks like at one moment while it trains: the last steps of its ranks, how far it is, what was saved.

In: the run directory, read from where it was read last. Out: a `Scene` for the finders.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from headway.telemetry import (
    Beat,
    Event,
    RunDir,
    number,
    read_beat,
    read_objects,
    read_part,
    read_record,
    section,
    whole,
)

WINDOW: Final = 400
"""Steps that are remembered of each rank."""
MEASURED: Final = 120
_RANKS: Final = 64
"""Ranks whose steps are read; of more, evenly chosen ones."""
_FIRST_BYTES: Final = 256 << 10
_MOST_BYTES: Final = 1 << 20
"""Read of one rank at a time; a run of a thousand steps per second is looked at in part."""


@dataclass(frozen=True, slots=True)
class Step:
    """One finished step of one rank; NaN: not known."""

    step: int
    t: float
    loss: float
    has_loss: bool
    """A loss was reported; it may be NaN."""
    took: float
    data: float
    comm: float
    save: float
    eval: float
    is_split: bool
    """Data and communication were measured; on a GPU they are in one step of twenty."""
    memory: float
    own: float = field(init=False)
    """Seconds without saving and validation."""

    def __post_init__(self) -> None:
        own = max(self.took - self.save - self.eval, self.data + self.comm, 0.0)
        object.__setattr__(self, "own", own)  # worked out once: it is asked for hundreds of times


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """From when on something is worth a word: the section `watch` of the config, whose defaults these are."""

    data_wait: float = 0.1
    straggler: float = 0.25
    plan_off: float = 0.5
    save_share: float = 0.3
    gpu_busy: float = 0.9
    memory_least: float = 0.7
    memory_most: float = 0.8
    temp_c: float = 80
    quiet_s: float = 10


@dataclass(slots=True, kw_only=True)
class Scene:
    """All that the finders look at."""

    name: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict)
    """Empty: a foreign line, of which no plan exists."""
    config: Mapping[str, Any] = field(default_factory=dict)
    targets: Targets = Targets()
    about: Mapping[str, Any] = field(default_factory=dict)
    """What does not change about the machine."""
    now: float = 0.0
    """Unix seconds."""
    monotonic_ns: int = 0
    reading: Mapping[str, Any] = field(default_factory=dict)
    """The last line of `devices.jsonl`."""
    pids: Collection[int] = ()
    """All processes of the run."""
    ranks: dict[int, deque[Step]] = field(default_factory=dict)
    measured: dict[int, deque[Step]] = field(default_factory=dict)
    """Those of which data and communication were measured."""
    beats: dict[int, Beat] = field(default_factory=dict)
    commits: list[Event] = field(default_factory=list)
    """Checkpoints that were committed."""
    validations: list[Event] = field(default_factory=list)
    began: float | None = None
    """When this attempt began to train."""
    guarded: list[Event] = field(default_factory=list)
    """Steps whose loss or gradient was not finite."""

    def add(self, rank: int, step: Step) -> None:
        """Take a step; one that is not beyond the last was taken again after a roll-back, and the old ones are gone."""
        steps = self.ranks.setdefault(rank, deque(maxlen=WINDOW))
        split = self.measured.setdefault(rank, deque(maxlen=MEASURED))
        if steps and step.step <= steps[-1].step:
            steps.clear()
            split.clear()
        steps.append(step)
        if step.is_split and math.isfinite(step.took):
            split.append(step)

    @property
    def is_script(self) -> bool:
        """Say whether it is somebody's own program, which no config of ours changes."""
        return not self.plan

    @property
    def step(self) -> int:
        """Steps that are finished."""
        return max((steps[-1].step for steps in self.ranks.values() if steps), default=0)

    @property
    def total_steps(self) -> int | None:
        """Planned steps."""
        return whole(self.plan.get("total_steps"))

    @property
    def step_s(self) -> float | None:
        """Median time of a step, saving and validation shared out over all."""
        steps = next((steps for steps in self.ranks.values() if len(steps) > 1), None)
        if steps is None:
            return None
        spent = steps[-1].t - steps[0].t
        return spent / (len(steps) - 1) if spent > 0 else None

    @property
    def left_s(self) -> float:
        """Return how long the run has to go; one without a known end: as long again as it has run."""
        if self.total_steps is not None and self.step_s is not None:
            return max(0.0, (self.total_steps - self.step) * self.step_s)
        return max(0.0, self.now - self.began) if self.began is not None else 0.0

    @property
    def at_risk_s(self) -> float:
        """Return the time since the last checkpoint: what the run loses if it ends now."""
        since = max((number(one.get("t")) for one in self.commits), default=self.began or self.now)
        return max(0.0, self.now - since)


class SceneReader:
    """Follows a run directory."""

    def __init__(self, run: RunDir, about: Mapping[str, Any]) -> None:
        job = read_record(run.job)
        config = section(job.get("config"))
        self.scene = Scene(
            name=run.name,
            plan=section(job.get("plan")),
            config=config,
            targets=read_targets(config),
            about=about,
        )
        self._run, self._events_at = run, 0
        self._attempt = -1
        self._at: dict[int, int] = {}

    def look(self, now: float, monotonic_ns: int) -> Scene:
        """Read what is new since the last look."""
        scene = self.scene
        scene.now, scene.monotonic_ns = now, monotonic_ns
        events, self._events_at = read_objects(self._run.events, self._events_at)
        for event in events:
            self._hear(event)
        ranks = self._run.ranks()
        for rank in ranks[:: max(1, math.ceil(len(ranks) / _RANKS))]:
            self._read(rank)
        beats = {rank: read_beat(self._run.heartbeat(rank)) for rank in ranks}
        scene.beats = {rank: beat for rank, beat in beats.items() if beat and beat.attempt == self._attempt}
        return scene

    def _hear(self, event: Event) -> None:
        scene = self.scene
        match event.get("kind"):
            case "attempt_started":
                self._attempt = whole(event.get("attempt")) or 0
                scene.began = number(event.get("t"))
                # Another batch may have been chosen, and what was measured before is of other processes.
                scene.plan = section(read_record(self._run.job).get("plan"))
                scene.ranks.clear()
                scene.measured.clear()
                scene.guarded.clear()
            case "checkpoint_committed":
                scene.commits.append(event)
            case "validation" if section(event.get("measures")):
                scene.validations.append(event)
            case "guard":
                scene.guarded.append(event)

    def _read(self, rank: int) -> None:
        path = self._run.metrics(rank)
        if rank not in self._at:
            # What was written before we came is old, but for a run that begins it is nothing, and for others a start.
            size = path.stat().st_size if path.is_file() else 0
            self._at[rank] = max(0, size - _FIRST_BYTES)
        data = read_part(path, self._at[rank], _MOST_BYTES)
        end = data.rfind(b"\n") + 1
        if not end:
            return
        rows, _ = read_objects(path, self._at[rank]) if len(data) < _MOST_BYTES else ([], 0)
        self._at[rank] += end
        for row in rows[-WINDOW:]:
            if row.get("a") == self._attempt and (step := read_step(row)) is not None:
                self.scene.add(rank, step)


def read_step(row: Mapping[str, Any]) -> Step | None:
    """Return a line of metrics; None: it is none."""
    step = whole(row.get("step"))
    if step is None:
        return None
    parts = {key: number(row.get(key)) for key in ("data", "comm", "forward", "save", "eval")}
    known = {key: value if math.isfinite(value) and value > 0 else 0.0 for key, value in parts.items()}
    return Step(
        step=step,
        t=number(row.get("t")),
        loss=number(row.get("loss")),
        has_loss=row.get("loss") is not None,
        took=number(row.get("dt")),
        data=known["data"],
        comm=known["comm"],
        save=known["save"],
        eval=known["eval"],
        is_split=known["forward"] > 0,
        memory=number(row.get("mem")),
    )


def read_targets(config: Mapping[str, Any]) -> Targets:
    """Return what the config says, and the default where it says nothing."""
    given = {name: number(value) for name, value in section(config.get("watch")).items()}
    return Targets(**{name: value for name, value in given.items() if name in _TARGETS and math.isfinite(value)})


_TARGETS: Final = frozenset(Targets.__dataclass_fields__)


def quarters(values: list[float]) -> list[list[float]]:
    """Cut values in their order into four; what holds in each of them has lasted, and is not a single pause."""
    size = len(values) // 4
    return [values[at * size : (at + 1) * size] for at in range(4)]


def held_median(values: list[float]) -> float:
    """Return the lowest median of the four quarters."""
    return min(median(part) for part in quarters(values))
