"""Traces of the real model and step, made by a child in the ranks' interpreter and kept by what they depend on."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from headway.ask import ask
from headway.errors import PlanError
from headway.machine import cpu_environment
from headway.planner.memory import WORKSPACE_BYTES, MemoryForecast
from headway.planner.record import Plan

TIMEOUT_S = 180.0
_KEPT = "~/.cache/headway/traces"
_SCHEMA = 3
"""Raised when traces tell more, so that those that tell less are made again."""
OFFLOADED = ("weights", "gradients", "optimizer-state", "moving-average")
"""What is in host memory with `parallel.offload`."""
_PARTS = ("train", "optimizer", "ema", "task")
"""Sections of the config that change what a step holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What one rank alone holds and does in a step of one micro-batch."""

    micro_batch: int
    peak_bytes: int
    parts: Mapping[str, int]
    """Holder to bytes at the peak."""
    moment: str
    params: int
    trained: int
    weight_bytes: int
    trained_bytes: int
    state_bytes: int
    dealt_bytes: int
    """Optimizer state that replicas deal out among themselves (Muon's momentum)."""
    largest_block_bytes: int
    rest_bytes: int
    """Weights outside of the blocks."""
    flops: int
    """Of forward and backward."""
    moved_bytes: int
    """Memory traffic of all that is not a matrix product."""
    update_bytes: int
    took_s: float
    peaks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Holders at the highest points of forward and backward, of the update and of validation; the highest of all is
    `parts`. Which it is changes with the micro-batch and with shards."""
    moments: Mapping[str, str] = field(default_factory=dict)
    """When exactly each of them is."""
    not_deterministic: Sequence[str] = ()
    """Operations without a deterministic kernel on CUDA."""


def find_trace(
    recipe: str, config: Mapping[str, Any], plan: Plan, *, micro_batches: Sequence[int]
) -> list[Trace] | None:
    """Return kept traces of this model and step, or none."""
    place = _place(recipe, config, plan, micro_batches)
    try:
        answer = json.loads(place.read_text(encoding="utf-8"))
        return _read(answer) if _still_holds(answer) else None
    except (OSError, ValueError):
        return None


def _still_holds(answer: Mapping[str, Any]) -> bool:
    """Say whether the user's own code is what it was when the answer was made; OSError: a file has gone."""
    sources: Mapping[str, str] = answer.get("sources", {})
    return all(hashlib.sha256(Path(path).read_bytes()).hexdigest() == digest for path, digest in sources.items())


def make_trace(
    recipe: str, config: Mapping[str, Any], plan: Plan, *, micro_batches: Sequence[int], python: str
) -> list[Trace]:
    """Trace the model in a child, keep the answer, and return it; refuse with the child's own reason."""
    job = {"recipe": recipe, "config": dict(config), "plan": plan.to_json()}
    question = {"job": job, "micro_batches": list(micro_batches)}
    env = {**cpu_environment(python, is_on_cpu=True), "CUDA_VISIBLE_DEVICES": ""}
    told = ask(python, question, module="headway.trace.recipe", within_s=TIMEOUT_S, env=env)
    if told.exit_code is None:
        raise PlanError("plan/trace-slow", seconds=round(TIMEOUT_S))
    if told.exit_code == -signal.SIGILL:
        raise PlanError("diagnose/illegal-instruction")
    if told.value is None:
        raise PlanError("plan/trace-failed", why=told.why)
    answer = told.value
    if "traces" not in answer:
        why = answer["text"].splitlines()[0] if answer["text"] else answer["trouble"]
        raise PlanError("plan/trace-failed", why=f"{answer.get('where', recipe)}: {why}")
    traces = _read(answer)
    place = _place(recipe, config, plan, micro_batches)
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(answer), encoding="utf-8")
    part.replace(place)
    return traces


def weigh_trace(trace: Trace, plan: Plan) -> MemoryForecast:
    """Return the peak of one rank of the plan, from the trace of a rank alone."""
    peaks = trace.peaks or {trace.moment: trace.parts}
    weighed = [_weigh_peak(trace, parts, trace.moments.get(name, name), plan) for name, parts in peaks.items()]
    return max(weighed, key=lambda one: one.allocated_bytes)


def _weigh_peak(trace: Trace, held: Mapping[str, int], moment: str, plan: Plan) -> MemoryForecast:
    parts = {name: float(size) for name, size in held.items()}
    # What backward and the step make for a moment; the table calls it what it is.
    parts["temporaries"] = parts.pop("backward", 0.0) + parts.pop("step", 0.0)
    parts["workspace"] = WORKSPACE_BYTES  # of cuBLAS, which a trace without a GPU does not meet
    ranks = plan.world_size
    if plan.strategy == "fsdp" and ranks > 1:
        for name in ("weights", "gradients", "optimizer-state", "moving-average"):
            parts[name] = parts.get(name, 0.0) / ranks
        if plan.precision == "bf16":
            parts.pop("weights-in-compute-type", None)  # gathered as bf16 and let go, block by block
        one = 0.5 if plan.precision != "fp32" else 1.0
        parts["gathered-weights"] = (2 * trace.largest_block_bytes + trace.rest_bytes) * one
        if plan.is_offloaded and plan.device == "cuda":
            for name in OFFLOADED:
                parts[name] = 0.0
        parts["gradients"] += trace.largest_block_bytes  # one block's, whole, before they are cut
    elif ranks > 1:
        parts["optimizer-state"] = parts.get("optimizer-state", 0.0) - trace.dealt_bytes * (1 - 1 / ranks)
    return MemoryForecast(parts={name: size for name, size in parts.items() if size > 0}, moment=moment, ranks=ranks)


def stretch(small: Trace, large: Trace, micro_batch: int) -> Trace:
    """Return the trace of another micro-batch, by the line through two."""
    step = large.micro_batch - small.micro_batch

    def at(low: float, high: float) -> int:
        return round(low + (high - low) / step * (micro_batch - small.micro_batch))

    def between(low: Mapping[str, int], high: Mapping[str, int]) -> dict[str, int]:
        return {name: max(0, at(low.get(name, 0), high.get(name, 0))) for name in {*low, *high}}

    values = {field.name: getattr(large, field.name) for field in fields(Trace)}
    for name in ("peak_bytes", "flops", "moved_bytes"):
        values[name] = at(getattr(small, name), getattr(large, name))
    # Each point by its own line: a line from one point to another leads nowhere.
    peaks = {name: between(small.peaks.get(name, {}), parts) for name, parts in large.peaks.items()}
    parts = max(peaks.values(), key=lambda one: sum(one.values())) if peaks else between(small.parts, large.parts)
    return Trace(**{**values, "micro_batch": micro_batch, "parts": parts, "peaks": peaks})


def _read(answer: Mapping[str, Any]) -> list[Trace]:
    known = {field.name for field in fields(Trace)}
    return [Trace(**{key: value for key, value in one.items() if key in known}) for one in answer["traces"]]


def _place(recipe: str, config: Mapping[str, Any], plan: Plan, micro_batches: Sequence[int]) -> Path:
    from headway import __version__

    facts = {
        "recipe": plan.code_id or recipe,
        "config": {name: config.get(name) for name in _PARTS},
        "device": plan.device,
        "precision": plan.precision,
        "micro_batches": list(micro_batches),
        "headway": __version__,
        "schema": _SCHEMA,
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:32]
    return Path(_KEPT).expanduser() / f"{digest}.json"
