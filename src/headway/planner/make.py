"""Makes the plan: layout, batch, length and learning rate, in that order, because each needs the one before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from headway.config import BatchConfig, Recipe, RunConfig, Situation
from headway.errors import PlanError
from headway.machine import MachineReport
from headway.planner.batch import Batch, BatchWish, keep_total, resolve_batch, wish_batch
from headway.planner.layout import Layout, lay_out
from headway.planner.length import FRESH, Length, Standing, resolve_length
from headway.planner.memory import MemoryForecast
from headway.planner.record import Plan, PlanWarning
from headway.planner.row_text import COMMAND_LAYER, FILE_LAYER, rank_of
from headway.planner.rows import Asked, find_too_large, list_rows
from headway.planner.schedule import check_floor, choose_warmup, lr_factor
from headway.planner.workers import share_workers

_BATCH_KEYS = ("per_device", "total", "accumulation", "all_devices")


class Loaded(Protocol):
    """What the config stage hands on: the values and which layer set each."""

    @property
    def config(self) -> RunConfig:
        """The values."""
        ...

    @property
    def origins(self) -> Mapping[str, str]:
        """Dotted key to where its value came from; a key that is not there has its default."""
        ...

    @property
    def guide_names(self) -> Mapping[str, str]:
        """Dotted key to the guide's own name, for values that were written with it."""
        ...


def make_plan(
    loaded: Loaded,
    machine: MachineReport,
    recipe: Recipe,
    *,
    before: Plan | None = None,
    done: Standing = FRESH,
    elsewhere: int = 0,
    can_be_uneven: bool = False,
) -> Plan:
    """Return how this run is laid out on this machine, or refuse with the nearest settings that work.

    Args:
        before: the plan of the run that continues: its total batch stays, unless another one has just been asked for.
        done: what that run has done.
        elsewhere: ranks on other nodes.
        can_be_uneven: where the total of before does not divide by the ranks, some may take more than others.
    """
    config, origins = loaded.config, loaded.origins
    layout = lay_out(config, machine, origins, elsewhere)
    tokens = recipe.tokens_per_sample(config.task) if recipe.tokens_per_sample else None
    in_epoch = recipe.train_samples(config.task) if recipe.train_samples else None
    layers: Mapping[str, int] = {key: rank_of(origin) for key, origin in origins.items()}
    typed = {key for key in _BATCH_KEYS if layers.get(f"batch.{key}", 0) == COMMAND_LAYER}
    if before is not None and not typed & {"total", "accumulation"}:
        batch, wish, origins = _continue_batch(
            loaded, before, world_size=layout.world_size, tokens=tokens, can_be_uneven=can_be_uneven
        )
        kept: Plan | None = before
    else:
        name = _name_of_all(loaded)
        asked, origins, layers = _share_out(config.batch, origins, layers, layout.world_size, name=name)
        wish = wish_batch(
            _drop_lowest(asked, layers),
            world_size=layout.world_size,
            tokens_per_sample=tokens,
            spelling=loaded.guide_names,
        )
        batch, kept = resolve_batch(wish), None
    length = resolve_length(config.train, batch_samples=batch.samples, train_samples=in_epoch, layers=layers, done=done)
    _, warmup = choose_warmup(config.lr, origins, batch_samples=batch.samples, before=before, done=done)
    workers, crowded = share_workers(config.parallel, layers, ranks=layout.local_size, cores=machine.planned_cores)
    factor = lr_factor(config.lr, batch=_in_unit(config, batch))
    check_floor(config.lr, factor)
    uuids = tuple(gpu.uuid for gpu in layout.gpus if gpu.uuid is not None)
    plan = Plan(
        world_size=layout.world_size,
        device=layout.device,
        gpus=tuple(gpu.physical for gpu in layout.gpus),
        backend="nccl" if layout.gpus else "gloo",
        strategy=layout.strategy,
        is_offloaded=config.parallel.offload and layout.strategy == "fsdp",
        precision=layout.precision,
        threads=layout.threads,
        workers=workers,
        micro_batch=batch.per_device,
        accumulation=batch.accumulation,
        batch_samples=batch.samples,
        tokens_per_sample=tokens,
        total_samples=length.total_samples,
        total_steps=length.total_steps,
        lr_factor=factor,
        warmup_samples=warmup,
        warnings=(
            *layout.warnings,
            *crowded,
            *_warn(warmup, batch, length, in_epoch),
            *_overruled(config, length, layers),
            *_uneven(batch, layout.world_size),
            *_advise(loaded, recipe, layout, batch),
        ),
        gpu_uuids=uuids if len(uuids) == len(layout.gpus) else (),
        epoch_samples=in_epoch,
        code_id=recipe.code_id,
        length=length.key,
    )
    asked_for = Asked(wish=wish, length=length, kept=kept, done=done, rate_key=recipe.rate_key)
    return replace(plan, rows=list_rows(plan, config, origins, machine=machine, asked=asked_for))


def _share_out(
    asked: BatchConfig, origins: Mapping[str, str], layers: Mapping[str, int], world_size: int, *, name: str
) -> tuple[BatchConfig, Mapping[str, str], Mapping[str, int]]:
    """Return the batch with `all_devices` dealt out over the ranks, unless a higher layer gives per_device itself.

    Args:
        name: how the user writes `all_devices`.
    """
    whole = asked.all_devices
    level, own = layers.get("batch.all_devices", 0), layers.get("batch.per_device", 0)
    if whole is None or (asked.per_device is not None and own > level):
        return asked, origins, layers
    share, rest = divmod(whole, world_size)
    if rest or (own == level and asked.per_device not in (None, share)):
        word = name if name == "batch.all_devices" else f"--{name}"
        near = sorted({max(world_size, whole - rest), whole - rest + world_size})
        raise PlanError(
            "plan/all-devices-does-not-divide",
            name=name,
            whole=whole,
            ranks=world_size,
            per_device=asked.per_device if own == level else f"{whole / world_size:g}",
            choices="\n".join(f"  {word}={one}" for one in near),
        )
    origins = {**origins, "batch.per_device": f"{whole} / {world_size}"}
    return asked.model_copy(update={"per_device": share}), origins, {**layers, "batch.per_device": level}


def _name_of_all(loaded: Loaded) -> str:
    """Return how the user writes `batch.all_devices`."""
    return loaded.guide_names.get("batch.all_devices", "batch.all_devices")


def _drop_lowest(asked: BatchConfig, layers: Mapping[str, int]) -> BatchConfig:
    """Return the batch without the one of three numbers that a lower layer set: two somebody wrote decide the third."""
    given = [key for key in ("per_device", "total", "accumulation") if getattr(asked, key) is not None]
    by_layer = sorted(given, key=lambda key: layers.get(f"batch.{key}", 0))
    if len(given) < 3 or layers.get(f"batch.{by_layer[0]}", 0) == layers.get(f"batch.{by_layer[1]}", 0):
        return asked
    return asked.model_copy(update={by_layer[0]: None})


def _in_unit(config: RunConfig, batch: Batch) -> int:
    return batch.tokens if config.batch.unit == "tokens" and batch.tokens else batch.samples


def _continue_batch(
    loaded: Loaded, before: Plan, *, world_size: int, tokens: int | None, can_be_uneven: bool
) -> tuple[Batch, BatchWish, Mapping[str, str]]:
    """Return the batch of a run that continues: its total stays, whatever the ranks and the micro-batch are now."""
    config, origins = loaded.config.batch, loaded.origins
    layers = {key: rank_of(origin) for key, origin in origins.items()}
    unit_size = tokens if config.unit == "tokens" and tokens else 1
    wish = BatchWish(
        total=before.batch_samples * unit_size,
        unit="tokens" if unit_size != 1 else "samples",
        world_size=world_size,
        tokens_per_sample=tokens,
        spelling=loaded.guide_names,
    )
    if COMMAND_LAYER in (layers.get("batch.per_device", 0), layers.get("batch.all_devices", 0)):
        asked, origins, _ = _share_out(config, origins, layers, world_size, name=_name_of_all(loaded))
        wish = replace(wish, per_device=asked.per_device)
        return resolve_batch(wish), wish, origins
    all_tokens = before.batch_samples * tokens if tokens else None
    batch = Batch(
        per_device=before.micro_batch,
        accumulation=before.accumulation,
        samples=before.batch_samples,
        tokens=all_tokens,
    )
    if world_size == before.world_size:
        return batch, wish, origins
    # Fewer ranks may take the micro-batch that somebody has written for them, where more had to take a smaller one;
    # not the one that ran out of memory.
    written = _drop_lowest(config, layers).per_device or 0
    largest = batch.per_device if find_too_large(before) else max(written, batch.per_device)
    kept = keep_total(batch, world_size=world_size, largest=largest, unit=wish.unit, can_be_uneven=can_be_uneven)
    return kept, wish, origins


def _uneven(batch: Batch, world_size: int) -> list[PlanWarning]:
    """Say that some ranks take more than others, because the total of before does not divide by the ranks there are."""
    in_step = batch.samples // batch.per_device
    if in_step % world_size == 0:
        return []
    facts = {
        "batch": str(batch.samples),
        "ranks": str(world_size),
        "size": str(batch.per_device),
        "least": str(in_step // world_size),
        "most": str(batch.accumulation),
    }
    return [PlanWarning(code="plan/uneven-batch", facts=facts)]


def _warn(warmup: int, batch: Batch, length: Length, in_epoch: int | None) -> list[PlanWarning]:
    warnings = []
    if warmup >= length.total_samples:
        facts = {"warmup": str(warmup), "total": str(length.total_samples)}
        warnings.append(PlanWarning(code="plan/warmup-too-long", facts=facts))
    if in_epoch is not None and batch.samples > in_epoch:
        facts = {"batch": str(batch.samples), "samples": str(in_epoch)}
        warnings.append(PlanWarning(code="plan/batch-over-epoch", facts=facts))
    return warnings


def _advise(loaded: Loaded, recipe: Recipe, layout: Layout, batch: Batch) -> list[PlanWarning]:
    """Return what the recipe has to say about this plan."""
    if recipe.advise is None:
        return []
    sizes = [gpu.total_bytes for gpu in layout.gpus if gpu.total_bytes is not None]
    situation = Situation(
        config=loaded.config,
        world_size=layout.world_size,
        per_device=batch.per_device,
        accumulation=batch.accumulation,
        is_sharded=layout.strategy == "fsdp",
        device_bytes=min(sizes, default=None),
        guide_names=loaded.guide_names,
        forecast=lambda parts, ranks: MemoryForecast(parts=parts, moment="backward", ranks=ranks),
    )
    return [PlanWarning(code=code, facts=facts) for code, facts in recipe.advise(situation)]


def _overruled(config: RunConfig, length: Length, layers: Mapping[str, int]) -> list[PlanWarning]:
    """Return a warning for a length somebody wrote that has no effect; a recipe's or preset's just gives way."""
    written = [key for key in length.overruled if layers.get(f"train.{key}", 0) >= FILE_LAYER]
    if not written:
        return []
    over = " ".join(f"train.{key}={getattr(config.train, key)}" for key in written)
    return [PlanWarning(code="plan/length-overruled", facts={"key": f"train.{length.key}", "over": over})]
