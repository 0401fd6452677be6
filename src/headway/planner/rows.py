"""Every quantity of a plan as one line: what it is, its value, and where the value came from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headway.config import RunConfig
from headway.machine import MachineReport
from headway.messages import say
from headway.planner.batch import BatchWish
from headway.planner.length import FRESH, Length, Standing
from headway.planner.record import Plan, PlanRow
from headway.planner.schedule import choose_warmup, draw_curve, make_schedule
from headway.units import commas, count

_EVERY = {
    (False, False): "plan/value-end",
    (True, False): "plan/value-steps",
    (False, True): "plan/value-epochs",
    (True, True): "plan/value-both",
}
"""How often something is done: by steps, by epochs."""
_TOO_LARGE = "plan/from-out-of-memory"
"""Origin of a micro-batch that was made smaller (launch/shrink.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What batch and length were made from."""

    wish: BatchWish
    length: Length
    kept: Plan | None = None
    """The plan of the run that continues, where that decided the total batch."""
    done: Standing = FRESH
    rate_key: str | None = None
    """Key of the recipe's section that multiplies the rate of its first group."""


def list_rows(
    plan: Plan, config: RunConfig, origins: Mapping[str, str], *, machine: MachineReport, asked: Asked
) -> tuple[PlanRow, ...]:
    """Return the plan's table in the order a reader asks: where, how much at once, how long, how fast, how safe."""
    return (
        *_where(plan, config, origins, machine),
        *(_kept_batch(plan, asked, asked.kept, origins) if asked.kept else _batch(plan, asked.wish, origins)),
        *_length(plan, config, origins, asked),
        *_rate(plan, config, origins, asked.rate_key),
        *_upkeep(plan, config, origins, machine),
    )


def make_row(
    key: str, value: object, origin: str = "", *, value_code: str = "", origin_code: str = "", **facts: object
) -> PlanRow:
    """Return a row; codes are also filled in as English text, for readers of the JSON."""
    words = {name: str(fact) for name, fact in facts.items()}
    return PlanRow(
        key=key,
        value=say(value_code, "en", **words) if value_code else str(value),
        origin=say(origin_code, "en", **words) if origin_code else origin,
        value_code=value_code,
        origin_code=origin_code,
        facts=words,
    )


def _from(origins: Mapping[str, str], key: str) -> str:
    return origins.get(key, "default")


def _where(plan: Plan, config: RunConfig, origins: Mapping[str, str], machine: MachineReport) -> Iterator[PlanRow]:
    chosen = [gpu for gpu in machine.gpus if gpu.physical in plan.gpus]
    names = Counter(gpu.name or "n/a" for gpu in chosen)
    asked = config.parallel.gpus
    if asked != "auto":
        yield make_row("device", _devices(plan, names), _from(origins, "parallel.gpus"))
    elif plan.gpus:
        num, here = len(plan.gpus), len(machine.gpus)
        yield make_row("device", _devices(plan, names), origin_code="plan/from-free-gpus", num=num, here=here)
    else:
        code = "plan/from-cpu-torch" if machine.gpus else "plan/from-no-gpu"
        yield make_row("device", "cpu", origin_code=code, torch=machine.framework.torch or "n/a")
    if machine.nodes > 1:
        product = f"{machine.nodes} × {plan.world_size // machine.nodes}"
        yield make_row("ranks", plan.world_size, origin_code="plan/from-wished-nodes", product=product)
    elif plan.gpus:
        yield make_row("ranks", plan.world_size, origin_code="plan/from-one-a-gpu")
    else:
        single = plan.strategy == "single" and config.parallel.strategy == "single"
        yield make_row("ranks", plan.world_size, _from(origins, "parallel.strategy" if single else "parallel.cpus"))
    if config.parallel.strategy != plan.strategy:
        yield make_row("strategy", plan.strategy, origin_code="plan/from-ranks", ranks=plan.world_size)
    else:
        yield make_row("strategy", plan.strategy, _from(origins, "parallel.strategy"))
    if plan.is_offloaded:
        yield make_row("offload", "", _from(origins, "parallel.offload"), value_code="plan/value-offload")
    if plan.strategy == "fsdp" and plan.accumulation > 1:
        yield make_row("sums", "", value_code="plan/value-sums-micro", origin_code="plan/from-sums-micro")
    if config.train.precision == "auto":
        yield make_row(
            "precision", plan.precision, origin_code=f"plan/from-{plan.precision}{'' if plan.gpus else '-cpu'}"
        )
    else:
        yield make_row("precision", plan.precision, _from(origins, "train.precision"))


def _devices(plan: Plan, names: Counter[str]) -> str:
    if not plan.gpus:
        return "cpu"
    indexes = ",".join(map(str, plan.gpus))
    return f"gpu {indexes} ({', '.join(f'{num} × {name}' for name, num in names.items())})"


def _batch(plan: Plan, asked: BatchWish, origins: Mapping[str, str]) -> Iterator[PlanRow]:
    tokens = plan.tokens_per_sample
    ranks, micro, steps = plan.world_size, plan.micro_batch, plan.accumulation
    if asked.per_device is not None:
        yield make_row("batch-per-device", micro, _from(origins, "batch.per_device"))
    elif asked.total is not None:
        yield make_row("batch-per-device", micro, commas(f"{plan.batch_samples} / ({ranks} × {steps})"))
    else:
        yield make_row("batch-per-device", micro, origin_code="plan/from-rule-per-device")
    if asked.accumulation is not None:
        yield make_row("batch-accumulation", steps, _from(origins, "batch.accumulation"))
    elif asked.total is not None and asked.per_device is not None:
        yield make_row("batch-accumulation", steps, commas(f"{plan.batch_samples} / ({ranks} × {micro})"))
    else:
        yield make_row("batch-accumulation", steps, origin_code="plan/from-rule-accumulation")
    product = commas(f"{ranks} × {micro} × {steps}")
    given = asked.total is not None
    samples = _from(origins, "batch.total") if given and asked.unit == "samples" else product
    yield make_row("batch-samples", count(plan.batch_samples), samples)
    if tokens is not None:
        product = commas(f"{plan.batch_samples} × {tokens}")
        origin = _from(origins, "batch.total") if given and asked.unit == "tokens" else product
        yield make_row("batch-tokens", count(plan.batch_samples * tokens), origin)


def find_too_large(plan: Plan) -> str | None:
    """Return the micro-batch for which this run had no memory, if there was one."""
    found = (row for row in plan.rows if row.key == "batch-per-device" and row.origin_code == _TOO_LARGE)
    return next((row.facts["before"] for row in found), None)


def _kept_batch(plan: Plan, asked: Asked, before: Plan, origins: Mapping[str, str]) -> Iterator[PlanRow]:
    """Yield the batch of a run that continues: the total stays, the rest follows."""
    micro, steps, batch, ranks = plan.micro_batch, plan.accumulation, plan.batch_samples, plan.world_size
    if asked.wish.per_device is not None:
        yield make_row("batch-per-device", micro, _from(origins, "batch.per_device"))
    elif (too_large := find_too_large(before)) is not None:
        yield make_row("batch-per-device", micro, origin_code=_TOO_LARGE, before=too_large)
    elif ranks == before.world_size:
        yield make_row("batch-per-device", micro, origin_code="plan/from-before")
    else:
        most = max(micro, before.micro_batch)
        yield make_row("batch-per-device", micro, commas(f"≤ {most}, {batch} / ({ranks} × {steps})"))
    yield make_row("batch-accumulation", steps, commas(f"{batch} / ({ranks} × {micro})"))
    if ranks == before.world_size:
        yield make_row("batch-samples", count(batch), origin_code="plan/from-before")
    else:
        yield make_row("batch-samples", count(batch), origin_code="plan/from-kept", ranks=before.world_size)
    if plan.tokens_per_sample is not None:
        tokens = plan.tokens_per_sample
        yield make_row("batch-tokens", count(batch * tokens), commas(f"{batch} × {tokens}"))


def _length(plan: Plan, config: RunConfig, origins: Mapping[str, str], asked: Asked) -> Iterator[PlanRow]:
    length, done = asked.length, asked.done
    origin = _from(origins, f"train.{length.key}")
    total, batch = plan.total_samples, plan.batch_samples
    # What was done with another batch is beside what is left; with the same batch the whole is one product.
    is_mixed = done.samples != done.step * batch
    steps = commas(f"{done.step} + ⌈({total} − {done.samples}) / {batch}⌉" if is_mixed else f"⌈{total} / {batch}⌉")
    yield make_row("steps", count(plan.total_steps), origin if length.key == "steps" else steps)
    product = commas(f"{plan.total_steps} × {batch}")
    if is_mixed:
        product = commas(f"{done.samples} + {max(0, plan.total_steps - done.step)} × {batch}")
    if length.key == "epochs" and length.epochs:
        product = commas(f"{config.train.epochs:g} × {round(total / length.epochs)}")
    yield make_row("samples", count(total), origin if length.key == "samples" else product)
    if length.epochs is not None:
        arithmetic = commas(f"{total} / {round(total / length.epochs)}")
        yield make_row("epochs", f"{length.epochs:.3g}", origin if length.key == "epochs" else arithmetic)


def _rate(plan: Plan, config: RunConfig, origins: Mapping[str, str], rate_key: str | None) -> Iterator[PlanRow]:
    lr = config.lr
    batch = plan.batch_samples * ((plan.tokens_per_sample or 1) if config.batch.unit == "tokens" else 1)
    if lr.base_batch is None or lr.scaling == "none":
        yield make_row("lr-factor", f"{plan.lr_factor:.4g}", origin_code="plan/from-no-scaling")
    else:
        ratio = commas(f"{batch} / {lr.base_batch}")
        yield make_row("lr-factor", f"{plan.lr_factor:.4g}", f"√({ratio})" if lr.scaling == "sqrt" else ratio)
    factors = [plan.lr_factor] if plan.lr_factor != 1 else []
    if rate_key is not None:
        factors.append(getattr(config.task, rate_key))
    product = " × ".join(f"{factor:.4g}" for factor in (lr.base, *factors))
    origin = (
        _from(origins, "lr.base") if not factors else product if rate_key is None else f"{product} (task.{rate_key})"
    )
    yield make_row("lr", f"{math.prod((lr.base, *factors)):.4g}", origin)
    key, _ = choose_warmup(config.lr, origins, batch_samples=plan.batch_samples)
    origin = _from(origins, key)
    if plan.warmup_samples:
        samples, steps = count(plan.warmup_samples), count(-(-plan.warmup_samples // plan.batch_samples))
        yield make_row("warmup", "", origin, value_code="plan/value-warmup", samples=samples, steps=steps)
    else:
        yield make_row("warmup", "", origin, value_code="plan/value-none")
    curve = draw_curve(make_schedule(lr, plan))
    yield make_row("schedule", f"{lr.schedule} {curve}", _from(origins, "lr.schedule"))


def _upkeep(plan: Plan, config: RunConfig, origins: Mapping[str, str], machine: MachineReport) -> Iterator[PlanRow]:
    for key, wish in (("eval", config.eval), ("save", config.save)):
        origin = _from(origins, f"{key}.every" if wish.every or wish.every_epochs is None else f"{key}.every_epochs")
        facts = {"steps": count(wish.every), "epochs": f"{wish.every_epochs or 0:g}"}
        code = _EVERY[bool(wish.every), wish.every_epochs is not None]
        yield make_row(f"{key}-every", "", origin, value_code=code, **facts)
    total, origin = config.parallel.all_workers, _from(origins, "parallel.workers")
    if total is not None and plan.workers != config.parallel.workers:
        is_share = plan.workers == max(1, total // plan.world_size)
        origin = commas(f"{total} / {plan.world_size}") if is_share else _from(origins, "parallel.all_workers")
    yield make_row("workers", plan.workers, origin)
    if config.parallel.threads is not None:
        yield make_row("threads", plan.threads, _from(origins, "parallel.threads"))
    else:
        yield make_row(
            "threads",
            plan.threads,
            origin_code="plan/from-cores",
            cores=machine.planned_cores,
            ranks=len(plan.gpus) or plan.world_size // machine.nodes,
        )
