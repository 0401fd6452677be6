"""What probes and runs have shown, handed to the machine's calibration file."""

from __future__ import annotations

import statistics
from pathlib import Path

from headway.config import RunConfig
from headway.machine import MachineReport
from headway.planner import Plan, Sighting, fingerprint, remember
from headway.telemetry import Columns, RunDir, own_step_s, read_json, read_metrics
from headway.tune.record import Probe, apply_settings

_SKIP = 5
"""First steps of a run, which warm up."""
_LEAST = 10
"""Steps a run must have beyond them to be worth remembering."""


def remember_probe(
    probe: Probe, plan: Plan, config: RunConfig, machine: MachineReport, place: Path | None = None
) -> Sighting | None:
    """Keep what a probe measured; one that failed has nothing to tell of time."""
    if not probe.is_ok or probe.first_s is None:
        return None
    plan, config = apply_settings(probe.settings, plan, config)
    once = {name: probe.parts.get(name, 0.0) for name in ("comm", "optimizer")}
    micro = probe.more_s if probe.more_s is not None else probe.first_s - sum(once.values())
    sighting = Sighting(
        source="probe",
        model=fingerprint(plan, config, machine),
        world_size=plan.world_size,
        micro_batch=plan.micro_batch,
        micro_s=micro,
        fixed_s=max(0.0, probe.first_s - micro),
        peak_bytes=probe.peak_bytes,
    )
    remember(sighting, machine, place)
    return sighting


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
