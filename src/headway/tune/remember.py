"""What probes have shown, handed to the machine's calibration file."""

from __future__ import annotations

from pathlib import Path

from headway.config import RunConfig
from headway.machine import MachineReport
from headway.planner import Plan, Sighting, fingerprint, remember
from headway.tune.record import Probe, apply_settings


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
