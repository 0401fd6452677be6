"""The forecast of one plan: memory of a rank, whether its devices have it, time, and what else would fit.

Memory comes from a trace of the real step where one was asked for, otherwise from the decoder formula, where the recipe
tells its shape. Time comes from the formula wherever there is one: it knows compiled blocks and each product's width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from headway.config import Recipe, RunConfig
from headway.machine import Gpu, GpuModel, MachineReport, find_model, gpu_models, has_bf16
from headway.planner.memory import CONTEXT_BYTES, MemoryForecast, Verdict, weigh_decoder
from headway.planner.models.decoder import Decoder
from headway.planner.recipe_trace import OFFLOADED, Trace, stretch, weigh_trace
from headway.planner.record import Plan
from headway.planner.roofline import Card, SpeedForecast, number_of, time_decoder, time_traced
from headway.planner.step import Work

_GIB = 1 << 30
CPU_CONTEXT_BYTES = 0.35e9
"""An interpreter with torch in it."""
SOURCES: tuple[Literal["trace", "formula"], ...] = ("trace", "formula")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What a forecast knows of the model: traces of two micro-batches, a shape, or both."""

    traces: tuple[Trace, Trace] | None = None
    shape: Decoder | None = None
    logit_tokens: int | None = None

    @property
    def source(self) -> Literal["trace", "formula"]:
        """Where the figures come from."""
        return "trace" if self.traces else "formula"

    @property
    def params(self) -> int:
        """All weights."""
        if self.traces:
            return self.traces[0].params
        assert self.shape is not None
        return self.shape.params


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """How one plan would do on one kind of device."""

    source: Literal["trace", "formula"]
    memory: MemoryForecast
    used_bytes: float
    device_bytes: float
    """Memory a rank may use on the smallest device."""
    verdict: Verdict
    speed: SpeedForecast | None
    checkpoint_bytes: float
    params: int = 0
    """All weights of the model."""
    power_w: float | None = None
    """Of one device at work."""

    @property
    def least_bytes(self) -> float:
        """What a rank cannot do without: its tensors and the context, nothing for fragments."""
        return min(self.used_bytes, self.memory.allocated_bytes + CONTEXT_BYTES)

    def to_json(self) -> dict[str, Any]:
        """Return the forecast as it is in plan.json."""
        out: dict[str, Any] = {
            "source": self.source,
            "params": self.params,
            "parts": {name: round(size) for name, size in self.memory.parts.items()},
            "moment": self.memory.moment,
            "allocated_bytes": round(self.memory.allocated_bytes),
            "least_bytes": round(self.least_bytes),
            "used_bytes": round(self.used_bytes),
            "device_bytes": round(self.device_bytes),
            "verdict": self.verdict,
            "checkpoint_bytes": round(self.checkpoint_bytes),
        }
        if self.speed:
            out |= {"step_s": self.speed.step_s, "samples_s": self.speed.samples_s, "mfu": self.speed.mfu}
            out |= {"exposed_s": self.speed.exposed_s, "network_gb_s": self.speed.network_gb_s}
        return out


def know_model(recipe: Recipe, config: RunConfig, traces: Sequence[Trace] | None) -> Model | None:
    """Return what is known of the model, or nothing: no trace was made and the recipe tells no shape."""
    pair = (traces[0], traces[1]) if traces is not None and len(traces) == 2 else None
    if recipe.shape is None:
        return Model(traces=pair) if pair else None
    if config.train.compile:
        pair = None  # a trace runs eagerly, and would keep what a compiled block does not
    words = dict(recipe.shape(config.task))
    return Model(traces=pair, logit_tokens=words.pop("logit_tokens", None), shape=Decoder(**words))


def trace_sizes(plan: Plan) -> tuple[int, int]:
    """Return the micro-batches to trace: the plan's, and one that gives the slope."""
    return (plan.micro_batch // 2, plan.micro_batch) if plan.micro_batch > 1 else (1, 2)


def foresee(plan: Plan, config: RunConfig, machine: MachineReport, model: Model) -> Forecast:
    """Return the forecast of a plan on the machine it was made for."""
    gpus = [gpu for gpu in machine.gpus if gpu.physical in plan.gpus]
    memory = weigh(plan, config, model)
    if not gpus:
        memory = replace(memory, parts={name: held for name, held in memory.parts.items() if name != "workspace"})
        share = machine.planned_memory_bytes / plan.world_size
        used = memory.allocated_bytes + CPU_CONTEXT_BYTES
        verdict: Verdict = "fits" if used <= 0.92 * share else "tight" if used <= share else "will-not-fit"
        return _forecast(plan, config, model, memory, used=used, device=share, verdict=verdict, card=None)
    device = min(gpu_room(gpu) for gpu in gpus)
    card = place_card(find_card(gpus[0]), machine, ranks=plan.world_size, local=len(gpus))
    verdict = memory.judge(device)
    return _forecast(plan, config, model, memory, used=memory.used_bytes, device=device, verdict=verdict, card=card)


def _forecast(
    plan: Plan,
    config: RunConfig,
    model: Model,
    memory: MemoryForecast,
    *,
    used: float,
    device: float,
    verdict: Verdict,
    card: Card | None,
) -> Forecast:
    return Forecast(
        source=model.source,
        memory=memory,
        used_bytes=used,
        device_bytes=device,
        verdict=verdict,
        speed=hurry(plan, config, model, card) if card else None,
        checkpoint_bytes=_checkpoint(config, model),
        params=model.params,
        power_w=card.power_w if card else None,
    )


def weigh(plan: Plan, config: RunConfig, model: Model) -> MemoryForecast:
    """Return what one rank of the plan holds at its peak."""
    if model.traces:
        low, high = model.traces
        return weigh_trace(stretch(low, high, plan.micro_batch), plan)
    assert model.shape is not None
    weighed = weigh_decoder(model.shape, describe_work(plan, config, model), ranks=plan.world_size)
    return _without_state(weighed, model.shape) if plan.is_offloaded and plan.device == "cuda" else weighed


def _without_state(weighed: MemoryForecast, shape: Decoder) -> MemoryForecast:
    """Return a forecast whose shards are in host memory; the gradients of one block are whole before they are cut."""
    parts = {name: held for name, held in weighed.parts.items() if name not in OFFLOADED}
    return replace(weighed, parts={**parts, "gradients": 4.0 * shape.block_params}, others=())


def offloaded_bytes(plan: Plan, config: RunConfig, model: Model) -> float:
    """Return the host memory that the shards of all of this machine's ranks take; 0 where nothing is offloaded."""
    if not plan.is_offloaded:
        return 0.0
    return _checkpoint(config, model) + 4.0 * model.params  # weights, moments and average; and gradients


def hurry(plan: Plan, config: RunConfig, model: Model, card: Card) -> SpeedForecast:
    """Return the time of one optimizer step by the card's measured rates and data sheet."""
    number = number_of(plan.precision, card)
    if model.shape is None:
        assert model.traces is not None
        trace = stretch(*model.traces, plan.micro_batch)
        return time_traced(
            card,
            number=number,
            flops=trace.flops,
            moved=trace.moved_bytes,
            update=trace.update_bytes,
            weights=trace.weight_bytes,
            trained=trace.trained_bytes,
            plan=(plan.micro_batch, plan.accumulation, plan.world_size, plan.strategy == "fsdp"),
        )
    work = describe_work(plan, config, model)
    return time_decoder(
        model.shape, replace(work, accumulation=plan.accumulation), card, ranks=plan.world_size, number=number
    )


def describe_work(plan: Plan, config: RunConfig, model: Model) -> Work:
    """Return a step of Headway's engine in the planner's words."""
    shape = model.shape
    assert shape is not None
    mixed = plan.precision != "fp32"
    shards = plan.world_size if plan.strategy == "fsdp" else 1
    matrices = shape.layers * shape.block_params
    if config.optimizer.name == "muon":  # one moment of a matrix, dealt out over replicas; two of the rest
        dealt = 1 if shards > 1 else plan.world_size
        states = (4 * matrices / dealt + 8 * (shape.params - matrices)) / shape.params
    else:
        states = _moment_bytes(config)
    return Work(
        micro_batch=plan.micro_batch,
        seq_len=plan.tokens_per_sample or 1,
        accumulation=2,  # gradients live in flat buffers from the first step on
        compute_bytes=2 if mixed else 4,
        stream_bytes=4,
        state_bytes=states,
        average_bytes=4 if config.ema.decay else 0,
        cast_weights=mixed and shards == 1,
        shard_weights=shards,
        shard_grads=shards,
        shard_states=shards,
        recompute="full" if config.train.activation_checkpoint else "none",
        compiled=config.train.compile,
        logit_tokens=model.logit_tokens,
    )


def _moment_bytes(config: RunConfig) -> float:
    """Return the optimizer's bytes per weight: Adam keeps two moments, SGD its momentum if it has one."""
    if config.optimizer.name == "sgd":
        return 4.0 if config.optimizer.momentum else 0.0
    return 8.0


def _checkpoint(config: RunConfig, model: Model) -> float:
    """Return the bytes of one checkpoint: trained weights, their moments and the average, in fp32."""
    if model.traces:
        trace = model.traces[0]
        return trace.trained_bytes * (2 if config.ema.decay else 1) + trace.state_bytes
    assert model.shape is not None
    shape = model.shape
    moments = _moment_bytes(config) * shape.params
    if config.optimizer.name == "muon":
        moments -= 4 * shape.layers * shape.block_params
    return shape.params * (8 if config.ema.decay else 4) + moments


def kept_checkpoints(plan: Plan, config: RunConfig) -> int:
    """Return how many checkpoints the disk holds at its fullest: those that stay, and the one being written."""
    save = config.save
    made = plan.total_steps // save.every + 1 if save.every else 1
    if save.every_epochs and plan.epoch_samples:
        made += int(plan.total_samples // (save.every_epochs * plan.epoch_samples))
    spaced = plan.total_steps // save.keep_every if save.keep_every else 0
    return min(made, save.keep_last + spaced + int(save.keep_best)) + 1


def gpu_room(gpu: Gpu) -> float:
    """Return the bytes of a GPU that nobody else holds."""
    if gpu.free_bytes is not None:
        return float(gpu.free_bytes)
    return float(gpu.total_bytes or 0)


def place_card(card: Card | None, machine: MachineReport, *, ranks: int, local: int) -> Card | None:
    """Return a card that knows how many of its kind share a machine, where the ranks are on several."""
    if card is None or ranks <= local:
        return card
    return replace(card, node=local, network_gb_s=machine.network_gb_s)


def find_card(gpu: Gpu) -> Card | None:
    """Return the data sheet of a GPU, where there is one with the rates."""
    total = gpu.total_bytes / _GIB if gpu.total_bytes else None
    model = find_model(gpu.name, total)
    return as_card(model) if model else None


def as_card(model: GpuModel) -> Card | None:
    """Return what the roofline needs of a data sheet, where it tells."""
    if model.tflops_half is None or model.bandwidth_gb_s is None:
        return None
    near = None if model.gemm_half else _nearest_measured(model)
    gemm = model.gemm_half or (_derive(model, near) if near else None)
    if gemm is None:
        return None
    return Card(
        name=model.name,
        capability=model.compute_capability,
        memory_bytes=model.memory_gib * _GIB,
        tflops_half=model.tflops_half,
        bandwidth_gb_s=model.bandwidth_gb_s,
        tflops_tf32=model.tflops_tf32,
        tflops_fp32=model.tflops_fp32,
        tflops_fp8=model.tflops_fp8,
        gemm_half=gemm,
        derived_from=near.name if near else None,
        gemm_tf32=model.gemm_tf32,
        gemm_fp32=model.gemm_fp32,
        gemm_fp8=model.gemm_fp8,
        gemm_bf16=model.gemm_bf16,
        has_bf16=model.bf16,
        link_gb_s=model.link_gb_s,
        has_bridge=model.has_bridge,
        pcie_gb_s=model.pcie_gb_s or 16.0,
        p2p=model.p2p is not False,
        power_w=model.power_w,
    )


def _nearest_measured(model: GpuModel) -> GpuModel | None:
    """Return the measured card nearest to one that nobody has measured: of its chip's capability, kind and speed."""

    def distance(other: GpuModel) -> tuple[bool, bool, bool, float]:
        is_game = model.name.startswith("GeForce"), other.name.startswith("GeForce")
        same_major = (other.capability or "").split(".")[0] == (model.capability or "").split(".")[0]
        apart = abs(math.log((other.tflops_half or 1.0) / (model.tflops_half or 1.0)))
        return other.capability != model.capability, not same_major, is_game[0] != is_game[1], apart

    able = (one for one in gpu_models() if one.gemm_half and one.vendor == model.vendor and not one.gemm_caveat)
    return min(able, key=distance, default=None)


def _derive(model: GpuModel, near: GpuModel) -> float:
    """Return a rate by the share of the data sheet another card was measured at; with less power for each TFLOPS a card
    slows down by the root of the ratio."""
    assert model.tflops_half and near.tflops_half and near.gemm_half
    share = near.gemm_half / near.tflops_half
    if model.power_w and near.power_w:
        share *= min(1.0, math.sqrt(model.power_w / model.tflops_half / (near.power_w / near.tflops_half)))
    return share * model.tflops_half


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One change of a plan and what it would do."""

    change: str
    """What to type: `batch.per_device=8`."""
    forecast: Forecast
    plan: Plan


def imagine(
    plan: Plan,
    config: RunConfig,
    machine: MachineReport,
    model: Model,
    study: Callable[[Plan, RunConfig], Model | None] | None = None,
) -> Iterator[Variant]:
    """Yield changes that keep the effective batch, each with its forecast, what saves memory first.

    Args:
        study: finds what is known of the model with other arithmetic; a trace holds for its own only.
    """
    units = [has_bf16(gpu) for gpu in machine.gpus if gpu.physical in plan.gpus]
    half: Literal["bf16", "fp16"] = "fp16" if False in units else "bf16"
    for changed, other, change in _changes(plan, config, half):
        known: Model | None = model
        if model.traces and (other is not config or changed.precision != plan.precision):
            known = study(changed, other) if study is not None else None
        if known is not None:
            yield Variant(change=change, forecast=foresee(changed, other, machine, known), plan=changed)


def _changes(plan: Plan, config: RunConfig, half: Literal["bf16", "fp16"]) -> Iterator[tuple[Plan, RunConfig, str]]:
    each = plan.micro_batch * plan.accumulation
    for micro in (size for size in range(1, 2 * plan.micro_batch + 1) if each % size == 0):
        if micro != plan.micro_batch and micro in (plan.micro_batch // 4, plan.micro_batch // 2, plan.micro_batch * 2):
            yield replace(plan, micro_batch=micro, accumulation=each // micro), config, f"batch.per_device={micro}"
    if plan.world_size > 1 and plan.strategy != "fsdp":
        yield replace(plan, strategy="fsdp"), config, "parallel.strategy=fsdp"
    if plan.world_size > 1 and plan.gpus and not plan.is_offloaded:
        change = "parallel.offload=true" if plan.strategy == "fsdp" else "parallel.strategy=fsdp parallel.offload=true"
        yield replace(plan, strategy="fsdp", is_offloaded=True), config, change
    again = config.train.activation_checkpoint
    train = config.train.model_copy(update={"activation_checkpoint": not again})
    yield plan, config.model_copy(update={"train": train}), f"train.activation_checkpoint={str(not again).lower()}"
    if plan.gpus:
        kinds: tuple[Literal["bf16", "fp16", "fp32"], ...] = (half, "fp32")
        for kind in (one for one in kinds if one != plan.precision):
            yield replace(plan, precision=kind), config, f"train.precision={kind}"


CARDS = ("3090", "4090", "5090", "l40s", "a100-40gb", "a100", "h20", "h100", "h200")
"""What people compare, small to large."""


def imagine_cards(plan: Plan, config: RunConfig, model: Model) -> Iterator[tuple[Card, Verdict, SpeedForecast]]:
    """Yield how the plan would do on as many GPUs of other kinds."""
    memory = weigh(plan, config, model)
    for card in compared_cards():
        placed = replace(card, node=len(plan.gpus)) if plan.world_size > len(plan.gpus) > 0 else card
        yield card, memory.judge(card.memory_bytes), hurry(plan, config, model, placed)


def compared_cards() -> Iterator[Card]:
    """Yield the cards people compare, small to large."""
    by_alias = {alias: one for one in gpu_models() for alias in one.aliases}
    for name in CARDS:
        card = as_card(by_alias[name]) if name in by_alias else None
        if card is not None:
            yield card


_MOST = 1 << 14
"""Samples of a micro-batch beyond which nobody searches."""
SHARES = {"conservative": 0.5, "balanced": 0.7, "aggressive": 0.9}
"""Share of a device's memory that each kind of preset may fill."""


def fill_memory(
    plan: Plan, config: RunConfig, machine: MachineReport, model: Model, share: float
) -> tuple[Plan, Forecast] | None:
    """Return the plan with the largest micro-batch below a share of the memory, as near the total as that allows."""
    each = plan.micro_batch * plan.accumulation

    def at(micro: int) -> tuple[Plan, Forecast]:
        accumulation = max(1, round(each / micro))
        samples = micro * accumulation * plan.world_size
        changed = replace(plan, micro_batch=micro, accumulation=accumulation, batch_samples=samples)
        return changed, foresee(changed, config, machine, model)

    def fits(micro: int) -> bool:
        _, found = at(micro)
        return found.used_bytes <= share * found.device_bytes

    if not fits(1):
        return None
    low, high = 1, 2
    while fits(high) and high < _MOST:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return at(low)


def largest_micro_batch(plan: Plan, config: RunConfig, machine: MachineReport, model: Model) -> Plan | None:
    """Return the plan with the largest micro-batch that fits and keeps the effective batch, or none."""
    each = plan.micro_batch * plan.accumulation
    for micro in range(each, 0, -1):
        if each % micro:
            continue
        changed = replace(plan, micro_batch=micro, accumulation=each // micro)
        if foresee(changed, config, machine, model).verdict == "fits":
            return changed
    return None


def speed_up(
    plan: Plan, config: RunConfig, model: Model, card: Card, ranks: Sequence[int] = (1, 2, 4, 8, 16)
) -> Mapping[int, float]:
    """Return samples per second for other numbers of ranks, each with the plan's micro-batches."""
    out = {}
    for number in ranks:
        strategy = plan.strategy if number > 1 else "single"
        if number > 1 and strategy == "single":
            strategy = "ddp"
        out[number] = hurry(replace(plan, world_size=number, strategy=strategy), config, model, card).samples_s
    return out
