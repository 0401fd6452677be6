"""What a forecast adds to a plan: rows of memory, time and disk, a warning when tight, a refusal when too little."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from headway.config import Recipe, RunConfig
from headway.errors import PlanError
from headway.machine import MachineReport
from headway.messages import say
from headway.plan.forecast import (
    Forecast,
    Model,
    Variant,
    foresee,
    imagine,
    kept_checkpoints,
    know_model,
    largest_micro_batch,
    trace_sizes,
)
from headway.plan.record import Plan, PlanRow, PlanWarning
from headway.plan.rows import make_row
from headway.plan.tracing import find_trace, make_trace
from headway.units import count, duration, short, size


class Wanted(Protocol):
    """What the config stage hands on."""

    @property
    def config(self) -> RunConfig:
        """The values."""
        ...


def look_ahead(
    plan: Plan, wanted: Wanted, machine: MachineReport, recipe: Recipe, *, trace: bool = False
) -> tuple[Plan, Model | None]:
    """Return the plan with its forecast, and what was known of the model; refuse a plan its GPUs have no memory for.

    Args:
        trace: make a trace of the real step when none is kept; takes seconds.
    """
    config = wanted.config
    values, sizes = config.model_dump(mode="json"), trace_sizes(plan)
    traces = find_trace(recipe.name, values, plan, micro_batches=sizes)
    if traces is None and trace:
        try:
            traces = make_trace(recipe.name, values, plan, micro_batches=sizes, python=machine.framework.python)
        except PlanError as error:  # a plan without a trace is still a plan
            facts = {name: str(fact) for name, fact in error.facts.items()}
            plan = replace(plan, warnings=(*plan.warnings, PlanWarning(code=error.code, facts=facts)))
    model = know_model(recipe, config, traces)
    if model is None:
        return plan, None
    forecast = foresee(plan, config, machine, model)
    if forecast.verdict == "will-not-fit" and plan.gpus:
        raise _refuse(plan, config, machine, model, forecast)
    warnings = list(plan.warnings)
    if forecast.verdict != "fits":
        is_tight = forecast.verdict == "tight"
        used = size(forecast.least_bytes if is_tight else forecast.used_bytes)
        facts = {"used": used, "have": size(forecast.device_bytes)}
        code = "plan/tight" if is_tight else "plan/over-memory"
        warnings.append(PlanWarning(code=code, facts=facts))
    disk = forecast.checkpoint_bytes * kept_checkpoints(plan, config)
    if machine.disk_free_bytes is not None and disk > machine.disk_free_bytes:
        facts = {"need": size(disk), "have": size(machine.disk_free_bytes), "place": machine.disk_place}
        warnings.append(PlanWarning(code="plan/disk-short", facts=facts))
    rows = (*plan.rows, *_rows(plan, config, forecast))
    return replace(plan, rows=rows, warnings=tuple(warnings), forecast=forecast.to_json()), model


def _rows(plan: Plan, config: RunConfig, forecast: Forecast) -> Iterator[PlanRow]:
    origin = f"plan/from-{forecast.source}"
    used = size(forecast.used_bytes)
    if forecast.verdict == "tight":  # between what it cannot do without and what it would like
        used = f"{size(forecast.least_bytes)} – {used}"
    yield make_row(
        "memory",
        "",
        value_code=f"plan/value-memory-{forecast.verdict}",
        origin_code=origin,
        used=used,
        have=size(forecast.device_bytes),
        moment=forecast.memory.moment,
    )
    speed = forecast.speed
    if speed is not None:
        mfu = f"{speed.mfu:.0%}"
        yield make_row("step-time", duration(speed.step_s), origin_code="plan/from-roofline", mfu=mfu)
        tokens = plan.tokens_per_sample
        rate, token_rate = short(speed.samples_s), short(speed.samples_s * tokens) if tokens else ""
        code = "plan/value-rate-tokens" if tokens else "plan/value-rate"
        facts = {"rate": rate, "tokens": token_rate, "mfu": mfu}
        yield make_row("rate", "", origin_code="plan/from-roofline", value_code=code, **facts)
        whole = plan.total_steps * speed.step_s
        yield make_row("eta", duration(whole), f"{count(plan.total_steps)} × {duration(speed.step_s)}")
        if forecast.power_w is not None:
            hours = whole / 3600
            watts = forecast.power_w * plan.world_size
            yield make_row("energy", f"{watts * hours / 1000:.3g} kWh", f"{plan.world_size} × {forecast.power_w:.0f} W")
    kept = kept_checkpoints(plan, config)
    each = forecast.checkpoint_bytes
    yield make_row("disk", size(each * kept), f"{kept} × {size(each)}")


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
    lines = [f"  {change} ({size(one.used_bytes)})" for change, one in list(found.items())[:3]]
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
