"""Which devices, how many ranks, which strategy, precision and threads: the part of a plan that the machine decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from headway.config import ParallelConfig, RunConfig
from headway.errors import PlanError
from headway.machine import Gpu, MachineReport, has_bf16, pick_devices
from headway.planner.record import PlanWarning

Precision = Literal["fp32", "bf16", "fp16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The run on its devices."""

    gpus: tuple[Gpu, ...]
    """Of this node."""
    world_size: int
    local_size: int
    """Ranks of this node."""
    strategy: Literal["single", "ddp", "fsdp"]
    precision: Precision
    threads: int
    warnings: tuple[PlanWarning, ...]

    @property
    def device(self) -> Literal["cpu", "cuda"]:
        """Where the ranks compute."""
        return "cuda" if self.gpus else "cpu"


def lay_out(config: RunConfig, machine: MachineReport, origins: Mapping[str, str], elsewhere: int = 0) -> Layout:
    """Return the layout, or refuse what this machine cannot do.

    Args:
        elsewhere: ranks on other nodes.
    """
    parallel = config.parallel
    by_index = {gpu.index: gpu for gpu in machine.gpus}
    gpus = tuple(by_index[index] for index in pick_devices(machine, parallel.gpus))
    if parallel.strategy == "single":
        if elsewhere or machine.nodes > 1:
            raise PlanError("plan/single-nodes", ranks=elsewhere or machine.nodes - 1)
        gpus, local_size = _keep_one(parallel, gpus, origins)
    else:
        local_size = len(gpus) or parallel.cpus
    elsewhere += (machine.nodes - 1) * local_size
    world_size = local_size + elsewhere
    precision = _choose_precision(config.train.precision, gpus)
    threads = parallel.threads or max(1, machine.planned_cores // local_size)
    return Layout(
        gpus=gpus,
        world_size=world_size,
        local_size=local_size,
        strategy=_choose_strategy(parallel, world_size),
        precision=precision,
        threads=threads,
        warnings=(*_warn_alone(parallel, world_size), *_warn(machine, gpus, local_size, threads, precision)),
    )


def _choose_strategy(parallel: ParallelConfig, world_size: int) -> Literal["single", "ddp", "fsdp"]:
    """Return the strategy: a rank alone has nobody to share with, also in a run that began with more."""
    if parallel.strategy == "fsdp" and world_size == 1:
        return "single"
    return parallel.strategy if parallel.strategy != "auto" else "ddp" if world_size > 1 else "single"


def _warn_alone(parallel: ParallelConfig, world_size: int) -> list[PlanWarning]:
    is_alone = parallel.strategy == "fsdp" and world_size == 1
    warnings = [PlanWarning(code="plan/fsdp-alone", facts={})] if is_alone else []
    if parallel.offload and _choose_strategy(parallel, world_size) != "fsdp":
        warnings.append(PlanWarning(code="plan/offload-alone", facts={}))
    return warnings


def _keep_one(
    parallel: ParallelConfig, gpus: tuple[Gpu, ...], origins: Mapping[str, str]
) -> tuple[tuple[Gpu, ...], int]:
    """Return the one device of strategy=single; a number of ranks that somebody wrote is not cut in silence."""
    asked = len(gpus) if parallel.gpus != "auto" else 0
    if not gpus and origins.get("parallel.cpus", "default") != "default":
        asked = parallel.cpus
    if asked > 1:
        raise PlanError("plan/single-many", ranks=asked, one="parallel.gpus=1" if gpus else "parallel.cpus=1")
    return gpus[:1], 1


def _choose_precision(wanted: Precision | Literal["auto"], gpus: Sequence[Gpu]) -> Precision:
    if wanted == "fp16" and not gpus:
        raise PlanError("plan/fp16-on-cpu")
    if wanted != "auto":
        return wanted
    known = [has_bf16(gpu) for gpu in gpus]
    if not gpus or None in known:
        return "fp32"
    return "bf16" if all(known) else "fp16"


def _warn(
    machine: MachineReport, gpus: Sequence[Gpu], world_size: int, threads: int, precision: str
) -> list[PlanWarning]:
    warnings = []
    if not gpus and world_size > machine.planned_cores:
        facts = {"ranks": str(world_size), "cores": str(machine.planned_cores)}
        warnings.append(PlanWarning(code="plan/ranks-over-cores", facts=facts))
    elif threads * world_size > machine.planned_cores:
        facts = {"ranks": str(world_size), "threads": str(threads), "cores": str(machine.planned_cores)}
        warnings.append(PlanWarning(code="plan/threads-over-cores", facts=facts))
    old = [gpu for gpu in gpus if has_bf16(gpu) is False]
    if precision == "bf16" and old:
        capability = old[0].capability
        facts = {"gpu": old[0].name or "n/a", "capability": ".".join(map(str, capability)) if capability else "n/a"}
        warnings.append(PlanWarning(code="plan/bf16-emulated", facts=facts))
    return warnings
