"""What this machine has been seen to do: times of steps, from probes and earlier runs, and the next step by them.

A step of one rank is `fixed + accumulation * (each + slope * micro_batch)`: what happens once a step (communication
that nothing hides, the update), and what happens once a micro-batch. Both halves are measured; only the micro-batch is
a line, through the sizes that were seen. One file a machine, one line a measurement; it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from headway.config import RunConfig
from headway.machine import MachineReport
from headway.planner.record import Plan

_KEPT = "~/.cache/headway/calibration"
_MOST_LINES = 2000
_SECTIONS = ("task", "optimizer", "ema")
"""Sections of the config that change what a step computes."""

Source = Literal["probe", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One measured step time."""

    source: Source
    model: str
    """Fingerprint of recipe, model, arithmetic and devices: steps are alike where this is equal."""
    world_size: int
    micro_batch: int
    micro_s: float
    """Of each micro-batch."""
    fixed_s: float
    """Of what happens once a step."""
    peak_bytes: int | None = None
    t: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The time of a step by what was seen here."""

    source: Source
    step_s: float
    samples_s: float
    sightings: int
    is_stretched: bool
    """The micro-batch or the number of ranks lies outside of what was seen."""


def fingerprint(plan: Plan, config: RunConfig, machine: MachineReport) -> str:
    """Return what must be equal for two steps to be alike, ranks and micro-batch apart."""
    values = config.model_dump(mode="json")
    gpus = sorted({gpu.name or "" for gpu in machine.gpus if gpu.physical in plan.gpus})
    facts = {
        "recipe": plan.code_id or config.recipe,
        "sections": {name: values.get(name) for name in _SECTIONS},
        "precision": plan.precision,
        "compile": config.train.compile,
        "activation_checkpoint": config.train.activation_checkpoint,
        "strategy": "fsdp" if plan.strategy == "fsdp" else "replicas",
        "device": plan.device,
        "gpus": gpus,
        "threads": plan.threads if plan.device == "cpu" else 0,
        "workers": plan.workers,
    }
    text = json.dumps(facts, sort_keys=True, default=str)
    # A recipe's default says `~`, and a file written by `config show` the folder it stands for: the same steps.
    text = text.replace('"~/', json.dumps(f"{Path.home()}/")[:-1])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def machine_file(machine: MachineReport, place: Path | None = None) -> Path:
    """Return the file of a machine: the same after a restart, another with other devices or cores."""
    facts = [
        sorted(gpu.name or "" for gpu in machine.gpus),
        machine.cores,
        machine.memory_bytes,
        os.uname().machine,
    ]
    name = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    return (place or Path(_KEPT).expanduser()) / f"{name}.jsonl"


def remember(sighting: Sighting, machine: MachineReport, place: Path | None = None) -> None:
    """Add a measurement to the machine's file."""
    path = machine_file(machine, place)
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps({"schema": "calibration/1", **asdict(sighting), "t": sighting.t or time.time()})
    # One short write at the end of the file: lines of two runs that end together do not mix.
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def recall(model: str, machine: MachineReport, place: Path | None = None) -> list[Sighting]:
    """Return what was measured of these steps, oldest first; lines that cannot be read are left out."""
    try:
        lines = machine_file(machine, place).read_text(encoding="utf-8").splitlines()[-_MOST_LINES:]
    except OSError:
        return []
    return [one for one in map(_read, lines) if one is not None and one.model == model]


def _read(line: str) -> Sighting | None:
    try:
        data: Mapping[str, Any] = json.loads(line)
        return Sighting(**{field.name: data[field.name] for field in fields(Sighting)})
    except (ValueError, KeyError, TypeError):
        return None


def expect(sightings: Sequence[Sighting], plan: Plan, *, latency_s: float = 0.0, blocking: int = 1) -> Seen | None:
    """Return the time of a step of the plan by what was seen; none: nothing like it was.

    Args:
        latency_s: what the network adds to every collective, beyond what was there when it was measured.
        blocking: collectives of a step that nothing hides; the last sum of gradients always is one.
    """
    if not sightings:
        return None
    near = _at_ranks(sightings, plan.world_size)
    sizes = {one.micro_batch for one in near}
    micro = _micro_s(sightings, near[0].world_size, plan.micro_batch)
    fixed = _fixed_s(sightings, plan.world_size, plan.micro_batch)
    waits = latency_s * blocking if plan.world_size > 1 else 0.0
    step = fixed + plan.accumulation * micro + waits
    is_inside = min(sizes) <= plan.micro_batch <= max(sizes) and plan.world_size in {one.world_size for one in near}
    return Seen(
        source="run" if any(one.source == "run" for one in near) else "probe",
        step_s=step,
        samples_s=plan.batch_samples / step,
        sightings=len(near),
        is_stretched=not is_inside,
    )


def _at_ranks(sightings: Sequence[Sighting], world_size: int) -> list[Sighting]:
    """Return what was seen at this number of ranks, else at the nearest."""
    nearest = min({one.world_size for one in sightings}, key=lambda size: (abs(size - world_size), size))
    return [one for one in sightings if one.world_size == nearest]


def _micro_s(sightings: Iterable[Sighting], world_size: int, micro_batch: int) -> float:
    """Return the seconds of a micro-batch: by the line through the sizes that were seen, or in proportion to one."""
    by_ranks: dict[int, dict[int, list[float]]] = {}
    for one in sightings:
        by_ranks.setdefault(one.world_size, {}).setdefault(one.micro_batch, []).append(one.micro_s)
    seen = {
        ranks: {size: statistics.median(times) for size, times in sizes.items()} for ranks, sizes in by_ranks.items()
    }
    if micro_batch in seen[world_size]:
        return seen[world_size][micro_batch]
    points = _pool(seen, world_size)
    if len(points) == 1:
        ((size, seconds),) = points.items()
        return seconds * micro_batch / size
    # Between or beyond the two nearest sizes: a line through far ones would hide where a cache or a GPU fills up.
    low, high = sorted(sorted(points, key=lambda size: abs(size - micro_batch))[:2])
    slope = max(0.0, (points[high] - points[low]) / (high - low))
    return max(points[low] + slope * (micro_batch - low), min(points.values()) * micro_batch / max(points) * 0.5)


def _pool(seen: Mapping[int, Mapping[int, float]], world_size: int) -> dict[int, float]:
    """Return the times at this number of ranks, with those of other numbers brought to them.

    Ranks that share a machine slow each other down by about the same factor at every size, so what one number of ranks
    has shown steadies the line of another.
    """
    own = seen[world_size]
    estimates = {size: [seconds] for size, seconds in own.items()}
    for ranks, others in seen.items():
        shared = [size for size, seconds in others.items() if size in own and seconds > 0]
        if ranks == world_size or not shared:
            continue
        slower = statistics.median(own[size] / others[size] for size in shared)
        for size, seconds in others.items():
            estimates.setdefault(size, []).append(slower * seconds)
    return {size: statistics.fmean(found) for size, found in estimates.items()}


def _fixed_s(sightings: Sequence[Sighting], world_size: int, micro_batch: int) -> float:
    """Return the seconds of what happens once a step; communication of other ranks by the ring's 2 (n - 1) / n."""
    # What was measured together stays together: a step that was timed is expected to take that long again.
    own = [one.fixed_s for one in sightings if (one.world_size, one.micro_batch) == (world_size, micro_batch)]
    if own:
        return statistics.median(own)
    by_ranks: dict[int, list[float]] = {}
    for one in sightings:
        by_ranks.setdefault(one.world_size, []).append(one.fixed_s)
    known = {ranks: statistics.median(times) for ranks, times in by_ranks.items()}
    if world_size in known:
        return known[world_size]
    alone = known.get(1)
    nearest = min(known, key=lambda size: abs(size - world_size))
    if alone is None or nearest == 1 or world_size == 1:
        return alone if alone is not None else known[nearest]
    talk = max(0.0, known[nearest] - alone) / ((nearest - 1) / nearest)
    return alone + talk * (world_size - 1) / world_size
