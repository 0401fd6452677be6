"""What a run has shown, kept so that the next plan on this machine knows better."""

from __future__ import annotations

import contextlib
import statistics
from pathlib import Path
from typing import Final

from headway.config import RunConfig
from headway.machine import MachineReport
from headway.planner import Plan, Sighting, fingerprint, remember
from headway.telemetry import Columns, RunDir, own_step_s, read_json, read_metrics, require_record

_SKIP: Final = 5
"""First steps of a run, which warm up."""
_LEAST: Final = 10
"""Steps a run must have beyond them to be worth remembering."""


def learn_from(run: RunDir) -> None:
    """Keep what the run's steps took."""
    config = require_record(run.job, lambda job: RunConfig.model_validate(job["config"]))
    machine = require_record(run.machine, MachineReport.from_json)
    # A full disk or a home that cannot be written is not a fault of the run.
    with contextlib.suppress(OSError):
        remember_run(run, config, machine)


def remember_run(run: RunDir, config: RunConfig, machine: MachineReport, place: Path | None = None) -> Sighting | None:
    """Keep what a run's steps took, by rank 0, for all ranks meet in every step; none: too few steps to tell."""
    plan = Plan.from_json(read_json(run.plan))
    found = read_metrics(run.metrics(0))
    if len(found["step"]) < _SKIP + _LEAST:
        return None
    step = statistics.median(own_step_s(found, row) for row in range(_SKIP, len(found["step"])))
    once = min(step, _once_s(found))
    sighting = Sighting(
        source="run",
        model=fingerprint(plan, config, machine),
        world_size=plan.world_size,
        micro_batch=plan.micro_batch,
        micro_s=(step - once) / plan.accumulation,
        fixed_s=once,
        peak_bytes=int(max(found["mem"])) if len(found["mem"]) and max(found["mem"]) > 0 else None,
    )
    remember(sighting, machine, place)
    return sighting


def _once_s(found: Columns) -> float:
    """Return the seconds of communication and update, over steps whose split is known."""
    rows = [row for row in range(_SKIP, len(found["step"])) if found["forward"][row] > 0]
    return statistics.median(found["comm"][row] + found["optimizer"][row] for row in rows) if rows else 0.0
