"""A probe: a point of the search as a short run of its own, supervised like any run, in processes of its own."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headway.config import LoadedConfig, RunConfig
from headway.launch import Nursery, Outcome, launch_run, training_job, write_job
from headway.machine import MachineReport
from headway.planner import Plan
from headway.telemetry import Beat, RunDir
from headway.tune.record import Ending, Probe, Settings, apply_settings
from headway.units import duration

ENTRY = "headway.engine.probe:main"
MINDSPORE_ENTRY = "headway.engine.mindspore.timed_steps:main"
"""What a rank of a probe is started with."""
_MEMORY_SHARE = 0.9
"""Of the free memory, that all ranks of a CPU probe may take together."""
_OUT_OF_MEMORY = ("device-out-of-memory", "host-out-of-memory", "host-oom-kill", "shared-memory-full")
_LATE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long a probe measures."""

    warmup: int = 2
    least: int = 3
    most: int = 200
    """Rounds; a round is a step of one micro-batch and, where the plan adds up several, one of two."""
    seconds: float = 2.0
    limit_s: float = 180.0
    """A probe that takes longer is ended: compiling forever, or far too slow."""

    def to_json(self) -> dict[str, Any]:
        """Return what the ranks are told."""
        return {"warmup": self.warmup, "least": self.least, "most": self.most, "seconds": self.seconds}


@dataclass(slots=True, kw_only=True)
class Prober:
    """Tries points in one folder, with ranks forked from one nursery."""

    place: Path
    loaded: LoadedConfig
    machine: MachineReport
    plan: Plan
    start_nursery: Callable[[], Nursery]
    effort: Effort = field(default_factory=Effort)
    limit_bytes: int | None = None
    """Memory one rank of a CPU probe may take; none: its share of what is free."""
    tick: Callable[[], None] = lambda: None
    """Called about ten times per second."""
    _nursery: Nursery | None = None

    def close(self) -> None:
        """End the nursery."""
        if self._nursery is not None:
            self._nursery.close()
            self._nursery = None

    def measure(self, settings: Settings, number: int, *, limit_s: float | None = None) -> Probe:
        """Try one point. Whatever happens to it is a result."""
        began = time.monotonic()
        plan, config = apply_settings(settings, self.plan, self.loaded.config)
        outcome, found, is_late = self._launch(
            number, plan, config, self.effort.to_json(), limit_s=limit_s or self.effort.limit_s
        )
        took = time.monotonic() - began
        if outcome.state == "done" and len(found) == plan.world_size:
            return _read(number, settings, plan, found, took)
        ending, code, facts = _blame(outcome, is_late, took)
        return Probe(number=number, settings=settings, ending=ending, took_s=took, code=code, facts=facts)

    def sweep(self, settings: Settings, number: int, wish: Mapping[str, float]) -> list[tuple[float, float]] | Probe:
        """Raise the learning rate through a short training; return factors and losses, or the probe that failed."""
        began = time.monotonic()
        plan, config = apply_settings(settings, self.plan, self.loaded.config)
        outcome, found, is_late = self._launch(
            number, plan, config, {**self.effort.to_json(), "lr_range": dict(wish)}, limit_s=10 * self.effort.limit_s
        )
        if outcome.state == "done" and found:
            return [(float(factor), float(loss)) for factor, loss in found[0]["curve"]]
        took = time.monotonic() - began
        ending, code, facts = _blame(outcome, is_late, took)
        return Probe(number=number, settings=settings, ending=ending, took_s=took, code=code, facts=facts)

    def _launch(
        self, number: int, plan: Plan, config: RunConfig, wish: Mapping[str, Any], *, limit_s: float
    ) -> tuple[Outcome, list[dict[str, Any]], bool]:
        run = RunDir(self.place / "probes" / f"{number:03d}")
        (run.root / "ranks").mkdir(parents=True)
        run.checkpoints.mkdir()
        # A probe that dies is a finding, not something to try again; nothing of it is worth a long farewell.
        launch = config.launch.model_copy(update={"restarts": 0, "grace_s": 2.0})
        guard = config.guard.model_copy(update={"policy": "stop"})
        config = config.model_copy(update={"launch": launch, "guard": guard})
        write_job(run, training_job(self.loaded.recipe.task, config, plan, {**wish, "limit_bytes": self._limit(plan)}))
        watcher = _Watcher(time.monotonic() + limit_s, self.tick)
        outcome = launch_run(run, observer=watcher, nursery=self._ready_nursery(), keeps_nursery=True)
        run.checkpoints.rmdir()
        return outcome, sorted(watcher.found, key=lambda one: int(one["rank"])), watcher.is_late

    def _limit(self, plan: Plan) -> int | None:
        if plan.device != "cpu":
            return None
        return self.limit_bytes or int(_MEMORY_SHARE * self.machine.planned_memory_bytes / plan.world_size)

    def _ready_nursery(self) -> Nursery:
        if self._nursery is not None and (self._nursery.link.fileno() < 0 or self._nursery.process.poll() is not None):
            self.close()
        if self._nursery is None:
            self._nursery = self.start_nursery()
        return self._nursery


class _Watcher:
    """Keeps what the ranks found and ends a probe that is late."""

    def __init__(self, deadline: float, tick: Callable[[], None]) -> None:
        self.found: list[dict[str, Any]] = []
        self.is_late = False
        self._deadline, self._tick = deadline, tick

    def event(self, event: dict[str, Any]) -> None:
        """Keep what a rank found."""
        if event["kind"] == "probed":
            self.found.append(event)

    def line(self, rank: int, line: bytes) -> None:
        """Leave the output in its file."""

    def tick(self, beats: list[Beat | None]) -> None:
        """Look at the clock."""
        self._tick()
        now = time.monotonic()
        if now > self._deadline:
            # The supervisor stops a run when it is asked to by a signal, and this is its own thread.
            self.is_late = True
            self._deadline = now + _LATE_S
            os.kill(os.getpid(), signal.SIGTERM)


def _read(number: int, settings: Settings, plan: Plan, found: list[dict[str, Any]], took: float) -> Probe:
    slowest = max(found, key=lambda one: float(one["step_s"]))
    return Probe(
        number=number,
        settings=settings,
        ending="ok",
        samples_s=plan.batch_samples / slowest["step_s"],
        step_s=slowest["step_s"],
        first_s=slowest["first_s"],
        more_s=slowest["more_s"],
        parts=slowest["parts"],
        peak_bytes=max(int(one["reserved_bytes"] or one["peak_bytes"]) for one in found),
        took_s=took,
    )


def _blame(outcome: Outcome, is_late: bool, took: float) -> tuple[Ending, str, dict[str, str]]:
    """Return how a probe ended and why, in the words of the diagnosis."""
    if is_late:
        return "too-slow", "tune/probe-late", {"took": duration(took)}
    if outcome.state in ("stopped", "interrupted"):
        return "interrupted", "tune/probe-interrupted", {}
    incident = outcome.incident
    if incident is None:
        return "failed", outcome.why, {name: str(value) for name, value in outcome.facts.items()}
    diagnosis = incident.diagnosis
    facts = {name: str(value) for name, value in diagnosis.facts.items()}
    ending: Ending = "out-of-memory" if diagnosis.kind in _OUT_OF_MEMORY else "failed"
    return ending, diagnosis.code, facts


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Add a line to the record of the search, at once on disk: a search may be ended at any time."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
