"""Everything the live view shows at one moment, read from the run directory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.redact import redact_lines
from headway.telemetry import (
    Columns,
    DeviceHistory,
    Event,
    RunDir,
    RunState,
    best_measure,
    held_validations,
    number,
    own_step_s,
    read_devices,
    read_events,
    read_log_tail,
    read_record,
    run_state,
    section,
    tail_metrics,
)
from headway.ui.sparkline import read_sparkline
from headway.ui.text import clean_text

_POINTS = 160
_LOG_BYTES = 128 << 10
_MOST_RANKS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """One rank."""

    rank: int
    phase: str
    step: int
    age_s: float | None
    step_s: float
    """Mean of its last steps, validation and saving left out."""
    shares: dict[str, float]
    """Parts of a step, as shares of it."""
    cores: float
    memory_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Something that was found."""

    code: str
    facts: dict[str, Any]
    since: float
    is_over: bool
    cost_s: float
    ignored_s: float = math.nan
    """What it costs until the end of the run if nobody acts; NaN: nobody knows."""

    def event(self) -> dict[str, Any]:
        """Return what is put into words."""
        return {"code": self.code, "facts": self.facts} | ({} if self.is_over else {"ignored_s": self.ignored_s})


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the view shows."""

    state: RunState
    loss: list[float]
    speed: list[float]
    """Samples per second along the run."""
    validation: list[float]
    measure: str
    planned_step_s: float
    ranks: list[RankRow]
    devices: DeviceHistory
    findings: list[Found]
    incidents: list[str]
    log: list[str]


def read_snapshot(run: RunDir) -> Snapshot:
    """Read what the view shows."""
    events = read_events(run.events)
    state = run_state(run, events)
    plan = section(read_record(run.job).get("plan")) or read_record(run.plan)
    batch = number(plan.get("batch_samples"))
    seconds = read_sparkline(run.metrics(0), _POINTS, "dt")
    devices = read_devices(run.devices)
    checks = held_validations(events)
    name = best_measure(checks[-1]) if checks else ""
    lines = read_log_tail(run.log, _LOG_BYTES).decode("utf-8", "replace").split("\n")
    return Snapshot(
        state=state,
        loss=read_sparkline(run.metrics(0), _POINTS),
        speed=[batch / one for one in seconds if one > 0] if math.isfinite(batch) else [],
        validation=[number(event["measures"].get(name)) for event in checks],
        measure=clean_text(name),
        planned_step_s=number(section(plan.get("forecast")).get("step_s")),
        ranks=[_rank(run, rank, state, devices) for rank in run.ranks()[:_MOST_RANKS]],
        devices=devices,
        findings=find_findings(events),
        incidents=[clean_text(str(event.get("text", ""))) for event in events if event.get("kind") == "incident"],
        log=redact_lines([clean_text(line) for line in lines if line.strip()]) if lines else [],
    )


def _rank(run: RunDir, rank: int, state: RunState, devices: DeviceHistory) -> RankRow:
    steps = tail_metrics(run.metrics(rank), 24)
    live = next((one for one in state.ranks if one.rank == rank), None)
    times = [own_step_s(steps, at) for at in range(len(steps["step"]))]
    mean = _mean(times)
    reading = devices.at(devices.last, "ranks", rank)
    shares = {part: _mean(steps[part]) / mean for part in ("data", "comm")} if mean > 0 else {}
    return RankRow(
        rank=rank,
        phase=live.phase if live is not None else "ended",
        step=live.step if live is not None else _last_step(steps),
        age_s=live.age_s if live is not None else None,
        step_s=mean,
        shares=shares,
        cores=number(reading.get("cpu")),
        memory_bytes=number(reading.get("mem")),
    )


def _last_step(steps: Columns) -> int:
    return int(steps["step"][-1]) if len(steps["step"]) else 0


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return math.fsum(finite) / len(finite) if finite else math.nan


def find_findings(events: list[Event]) -> list[Found]:
    """Return what was found, open ones first; one that is over keeps what it cost."""
    found: dict[tuple[str, str], Found] = {}
    for event in events:
        kind, key = event.get("kind"), (str(event.get("code")), str(event.get("key")))
        if kind in ("finding", "finding_over"):
            since = number(event.get("since", event.get("t")))
            known = found.get(key)
            found[key] = Found(
                code=key[0],
                facts={str(name): value for name, value in section(event.get("facts")).items()},
                since=known.since if known is not None and kind == "finding_over" else since,
                is_over=kind == "finding_over",
                cost_s=number(event.get("cost_s", 0.0)),
                ignored_s=number(event.get("ignored_s")),
            )
    return sorted(found.values(), key=lambda one: (one.is_over, -one.since))
