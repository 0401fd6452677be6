"""What a forecast adds to a plan: rows of memory, time and disk, a warning when tight, a refusal when too little."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from headway.config import Recipe, RunConfig
from headway.errors import PlanError
from headway.machine import MachineReport
from headway.messages import say
from headway.planner.calibrate import Seen, expect, fingerprint, recall
from headway.planner.copies import price_copies
from headway.planner.forecast import (
    Forecast,
    Model,
    Variant,
    foresee,
    imagine,
    kept_checkpoints,
    know_model,
    largest_micro_batch,
    offloaded_bytes,
    trace_sizes,
)
from headway.planner.length import FRESH, Standing
from headway.planner.recipe_trace import find_trace, make_trace
from headway.planner.record import Plan, PlanRow, PlanWarning
from headway.planner.roofline import SpeedForecast
from headway.planner.rows import make_row
from headway.units import count, duration, short, size


class Wanted(Protocol):
    """What the config stage hands on."""

    @property
    def config(self) -> RunConfig:
        """The values."""
        ...


def look_ahead(
    plan: Plan,
    wanted: Wanted,
    machine: MachineReport,
    recipe: Recipe,
    *,
    trace: bool = False,
    done: Standing = FRESH,
) -> tuple[Plan, Model | None]:
    """Return the plan with its forecast, and what was known of the model; refuse a plan its GPUs have no memory for.

    Args:
        trace: make a trace of the real step when none is kept; takes seconds.
        done: what a run that continues has done; the time is that of the rest.
    """
    config = wanted.config
    try:
        model = study_model(plan, config, machine, recipe, trace=trace)
    except PlanError as error:  # a plan without a trace is still a plan
        facts = {name: str(fact) for name, fact in error.facts.items()}
        plan = replace(plan, warnings=(*plan.warnings, PlanWarning(code=error.code, facts=facts)))
        model = study_model(plan, config, machine, recipe, trace=False)
    # Steps that were timed on one machine say nothing of a network between several.
    seen = expect(recall(fingerprint(plan, config, machine), machine), plan) if machine.nodes == 1 else None
    if model is None:
        # Nothing is known of the memory, but these steps have been timed here.
        rows = (*plan.rows, *_time_rows(plan, done, seen=seen)) if seen else plan.rows
        rows = (*rows, _copies(plan, wanted, machine, recipe, forecast=None, seen=seen))
        return replace(plan, rows=rows, forecast=_time_json({}, seen) if seen else None), None
    forecast = foresee(plan, config, machine, model)
    if forecast.verdict == "will-not-fit" and plan.gpus:
        raise _refuse(plan, config, machine, model, forecast)
    warnings = [*plan.warnings, *_refused_kernels(plan, config, model)]
    if forecast.verdict != "fits":
        is_tight = forecast.verdict == "tight"
        used = size(forecast.least_bytes if is_tight else forecast.used_bytes)
        facts = {"used": used, "have": size(forecast.device_bytes)}
        code = "plan/tight" if is_tight else "plan/over-memory"
        warnings.append(PlanWarning(code=code, facts=facts))
    held = offloaded_bytes(plan, config, model)
    if held > machine.planned_memory_bytes:
        facts = {"need": size(held), "have": size(machine.planned_memory_bytes)}
        warnings.append(PlanWarning(code="plan/offload-over-host", facts=facts))
    disk = forecast.checkpoint_bytes * kept_checkpoints(plan, config)
    if machine.disk_free_bytes is not None and disk > machine.disk_free_bytes:
        facts = {"need": size(disk), "have": size(machine.disk_free_bytes), "place": machine.disk_place}
        warnings.append(PlanWarning(code="plan/disk-short", facts=facts))
    copies = _copies(plan, wanted, machine, recipe, forecast=forecast, seen=seen)
    rows = (*plan.rows, *_rows(plan, config, forecast, seen, done), copies)
    told = _time_json(forecast.to_json(), seen)
    return replace(plan, rows=rows, warnings=tuple(warnings), forecast=told), model


def needs_trace(plan: Plan, config: RunConfig, recipe: Recipe) -> bool:
    """Say whether only a trace can tell: there is no formula, or a step may use kernels that its GPUs will refuse."""
    return recipe.shape is None or _must_be_deterministic(plan, config)


def _must_be_deterministic(plan: Plan, config: RunConfig) -> bool:
    return config.train.deterministic and plan.device == "cuda"


def _refused_kernels(plan: Plan, config: RunConfig, model: Model) -> Iterator[PlanWarning]:
    """Yield a warning that names the operations with which the first step would end."""
    if not model.traces or not _must_be_deterministic(plan, config):
        return
    names = sorted({name for trace in model.traces for name in trace.not_deterministic})
    if names:
        yield PlanWarning(code="plan/not-deterministic", facts={"ops": ", ".join(names)})


def _copies(
    plan: Plan, wanted: Wanted, machine: MachineReport, recipe: Recipe, *, forecast: Forecast | None, seen: Seen | None
) -> PlanRow:
    """Return how often the training state is kept in memory."""
    if recipe.framework is not None and recipe.framework(wanted.config.task) == "mindspore":
        return make_row("in-memory", "", value_code="plan/value-no-copies", origin_code="plan/from-copies-mindspore")
    speed = forecast.speed if forecast else None
    step_s = seen.step_s if seen else speed.step_s if speed else None
    return price_copies(plan, wanted.config, machine, forecast=forecast, step_s=step_s)


def _time_json(told: dict[str, Any], seen: Seen | None) -> dict[str, Any]:
    """Return the forecast with the measured time in place of the data sheet's, and which of the two it is."""
    if seen is not None:
        return {**told, "step_s": seen.step_s, "samples_s": seen.samples_s, "time_source": seen.source}
    return {**told, "time_source": "roofline"} if "step_s" in told else told


def study_model(plan: Plan, config: RunConfig, machine: MachineReport, recipe: Recipe, *, trace: bool) -> Model | None:
    """Return what is known of the model: a trace (kept, or new if wanted), the recipe's own shape, both, or nothing.

    A recipe that tells its shape is traced only where that is wanted: the words of a command decide which answer it
    gives, never what an earlier one has left behind.

    Raises:
        PlanError: a new trace was wanted and could not be made.
    """
    if recipe.shape is not None and not trace:
        return know_model(recipe, config, None)
    values, sizes = config.model_dump(mode="json"), trace_sizes(plan)
    traces = find_trace(config.recipe, values, plan, micro_batches=sizes)
    if traces is None and trace:
        # Traced here, also for a machine that is elsewhere.
        python = machine.framework.python if machine.stands_in is None else config.env.python or sys.executable
        traces = make_trace(config.recipe, values, plan, micro_batches=sizes, python=python)
    return know_model(recipe, config, traces)


def has_trace(plan: Plan, config: RunConfig) -> bool:
    """Say whether a trace of this model and step is kept, so that it costs no time."""
    sizes = trace_sizes(plan)
    return find_trace(config.recipe, config.model_dump(mode="json"), plan, micro_batches=sizes) is not None


def _rows(plan: Plan, config: RunConfig, forecast: Forecast, seen: Seen | None, done: Standing) -> Iterator[PlanRow]:
    counted = "plan/from-trace-count" if forecast.source == "trace" else "plan/from-formula-count"
    yield make_row("params", short(forecast.params), origin_code=counted)
    origin = f"plan/from-{forecast.source}"
    least, used = size(forecast.least_bytes), size(forecast.used_bytes)
    if plan.gpus and least != used:  # between what it cannot do without and what it would like
        used = f"{least} – {used}"
    yield make_row(
        "gpu-memory" if plan.gpus else "memory",
        "",
        value_code=f"plan/value-memory-{forecast.verdict}",
        origin_code=origin,
        used=used,
        have=size(forecast.device_bytes),
        moment=forecast.memory.moment,
    )
    yield from _time_rows(plan, done, seen=seen, forecast=forecast)
    kept = kept_checkpoints(plan, config)
    each = forecast.checkpoint_bytes
    yield make_row("disk", size(each * kept), f"{kept} × {size(each)}")


def _time_rows(plan: Plan, done: Standing, *, seen: Seen | None, forecast: Forecast | None = None) -> Iterator[PlanRow]:
    """Yield time by what this machine has shown, else by the data sheet."""
    speed = forecast.speed if forecast else None
    if seen is None and speed is None:
        return
    if seen is not None:
        step_s, rate_s = seen.step_s, seen.samples_s
        origin = "plan/from-stretched" if seen.is_stretched else f"plan/from-{seen.source}"
        facts = {"num": str(seen.sightings), "mfu": ""}
    else:
        assert speed is not None
        step_s, rate_s = speed.step_s, speed.samples_s
        origin = speed.origin
        facts = {"num": "0", "mfu": f"{speed.mfu:.0%}", "other": speed.derived_from or ""}
    yield make_row("step-time", duration(step_s), origin_code=origin, **facts)
    tokens = plan.tokens_per_sample
    code = "plan/value-rate-tokens" if tokens else "plan/value-rate"
    facts |= {"rate": short(rate_s), "tokens": short(rate_s * tokens) if tokens else ""}
    yield make_row("rate", "", origin_code=origin, value_code=code, **facts)
    if speed is not None and seen is None:
        yield from network_rows(speed)
    steps = max(0, plan.total_steps - done.step)
    whole = steps * step_s
    yield make_row("left" if done.step else "eta", duration(whole), f"{count(steps)} × {duration(step_s)}")
    if forecast is not None and forecast.power_w is not None:
        watts = forecast.power_w * plan.world_size
        kwh = f"{watts * whole / 3.6e6:.3g} kWh"
        yield make_row("energy", kwh, f"{plan.world_size} × {forecast.power_w:.0f} W")


def network_rows(speed: SpeedForecast) -> Iterator[PlanRow]:
    """Yield what the network between nodes is taken to be and what it costs; nothing where all ranks are on one."""
    if speed.network_gb_s is None:
        return
    said = "plan/from-network" if speed.is_network_said else "plan/from-network-usual"
    rate = f"{speed.network_gb_s * 8:,.4g}" if speed.network_gb_s < 1 else f"{speed.network_gb_s * 8:,.0f}"
    yield make_row("network", "", value_code="plan/value-network", origin_code=said, rate=f"{rate} Gb/s")
    facts = {"mfu": f"{speed.mfu:.0%}", "other": speed.derived_from or ""}
    facts |= {"share": f"{speed.exposed_s / speed.step_s:.0%}", "time": duration(speed.exposed_s)}
    yield make_row(
        "communication", "", value_code="plan/value-communication", origin_code=speed.origin, num="0", **facts
    )


def _refuse(plan: Plan, config: RunConfig, machine: MachineReport, model: Model, forecast: Forecast) -> PlanError:
    """Return the refusal with the nearest plans that fit: the least change of speed first."""
    found: dict[str, Forecast] = {}
    largest = largest_micro_batch(plan, config, machine, model)
    if largest is not None:
        change = f"batch.per_device={largest.micro_batch}"
        found[change] = foresee(largest, config, machine, model)
    fitting: list[Variant] = [one for one in imagine(plan, config, machine, model) if one.forecast.verdict == "fits"]
    for one in sorted(fitting, key=lambda one: one.forecast.speed.step_s if one.forecast.speed else 0.0):
        found.setdefault(one.change, one.forecast)
    if plan.world_size > 1 and plan.strategy != "fsdp":
        # Where neither helps alone: shards, and a smaller micro-batch with the effective batch kept.
        sharded = largest_micro_batch(replace(plan, strategy="fsdp"), config, machine, model)
        if sharded is not None and sharded.micro_batch < plan.micro_batch:
            change = f"parallel.strategy=fsdp batch.per_device={sharded.micro_batch}"
            found[change] = foresee(sharded, config, machine, model)
    lines = [f"  {change}  # {size(one.used_bytes)}" for change, one in list(found.items())[:3]]
    parts = sorted(forecast.memory.parts.items(), key=lambda part: -part[1])
    return PlanError(
        "plan/does-not-fit" if lines else "plan/never-fits",
        used=size(forecast.used_bytes),
        have=size(forecast.device_bytes),
        micro=plan.micro_batch,
        most=", ".join(f"{say(holder_code(name))} {size(held)}" for name, held in parts[:3]),
        choices="\n".join(lines),
    )


def holder_code(name: str) -> str:
    """Return the message code of a part of the memory."""
    return f"plan/holder-{name}"


def list_holders(forecast: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return who holds a rank's memory, the most first, down to what the driver shows."""
    parts = sorted(forecast["parts"].items(), key=lambda part: -part[1])
    rest = forecast["used_bytes"] - forecast["allocated_bytes"]
    return [*parts, ("outside", rest)]
