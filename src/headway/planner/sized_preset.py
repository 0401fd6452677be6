"""Presets that are computed for the machine at hand: how much of a device's memory the micro-batch may fill.

`conservative`, `balanced` and `aggressive` mean about half, seven tenths and nine tenths of the memory, for every
recipe. A recipe's own preset of that name decides the model; the micro-batch is the machine's affair, unless somebody
wrote one. With a total given, the effective batch stays and only accumulation follows; without one, a GPU is filled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headway.config import LoadedConfig, Origin
from headway.errors import PlanError
from headway.machine import MachineReport
from headway.planner.forecast import SHARES, Model, foresee
from headway.planner.make import make_plan
from headway.planner.outlook import study_model
from headway.planner.record import Plan
from headway.planner.row_text import FILE_LAYER, rank_of

_OWN = ("batch.per_device", "batch.all_devices", "batch.accumulation")
"""Who writes one of these has decided the micro-batch."""
_MOST = 1 << 14


def fit_preset(loaded: LoadedConfig, machine: MachineReport) -> LoadedConfig:
    """Return the config with the micro-batch its preset means on this machine; others come back as they are."""
    config = loaded.config
    share = SHARES.get(config.preset or "")
    if share is None or loaded.framework != "torch" or _is_decided(loaded.origins):
        return loaded
    plan = make_plan(loaded, machine, loaded.recipe)
    try:
        # A shape answers at once; only where there is none is a trace worth its seconds.
        model = study_model(plan, config, machine, loaded.recipe, trace=loaded.recipe.shape is None)
    except PlanError:  # it cannot be traced; the recipe's own numbers are all there is
        model = study_model(plan, config, machine, loaded.recipe, trace=False)
    if model is None:
        return loaded
    keeps_total = config.batch.total is not None or not plan.gpus
    micro = largest_within(plan, loaded, machine, model, share=share, keeps_total=keeps_total)
    each = plan.micro_batch * plan.accumulation
    changes = {"per_device": micro, "all_devices": None}
    if config.batch.total is None:
        changes["accumulation"] = max(1, each // micro)
    batch = config.batch.model_copy(update=changes)
    origin = Origin(f"preset {config.preset}", "preset")
    origins = {**loaded.origins, **{f"batch.{key}": origin for key, value in changes.items() if value is not None}}
    return replace(loaded, config=config.model_copy(update={"batch": batch}), origins=origins)


def _is_decided(origins: Mapping[str, str]) -> bool:
    return any(rank_of(origins.get(key, "default")) >= FILE_LAYER for key in _OWN)


def largest_within(
    plan: Plan, loaded: LoadedConfig, machine: MachineReport, model: Model, *, share: float, keeps_total: bool
) -> int:
    """Return the largest micro-batch whose forecast stays below a share of the memory; at the least 1.

    Args:
        keeps_total: only sizes that divide a rank's part of the effective batch.
    """
    each = plan.micro_batch * plan.accumulation

    def fits(micro: int) -> bool:
        changed = replace(plan, micro_batch=micro, accumulation=max(1, each // micro))
        found = foresee(changed, loaded.config, machine, model)
        return found.used_bytes <= share * found.device_bytes

    if keeps_total:
        sizes = [size for size in range(1, min(each, _MOST) + 1) if each % size == 0]
        return max((size for size in sizes if fits(size)), default=1)
    low, high = 1, 2
    while high < _MOST and fits(high):
        low, high = high, 2 * high
    while high - low > max(1, low // 8):  # kernels like whole eighths better than the last sample
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
