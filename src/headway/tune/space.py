"""What may be tried on this machine for this plan: the values of every axis, and why others are left out."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.config import RunConfig, layer_of
from headway.machine import MachineReport, has_bf16
from headway.planner import Plan
from headway.tune.record import Settings, Skip, Value, key_of, settings_of

_RATIO = 1.9
"""Micro-batches closer than this are not both tried: their rates differ by less than a probe can tell."""
_BF16_UNITS = ("amx_bf16", "avx512_bf16", "bf16")
"""Flags of CPUs that multiply bf16 themselves; elsewhere it is emulated and slower."""
_MOST_WORKERS = 8
_TORCH_ONLY = ("precision", "activation_checkpoint", "compile", "workers", "prefetch")
"""What MindSpore's engine does not read; a recipe names what is in their place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Axis to its values, rising."""

    values: Mapping[str, tuple[Value, ...]]
    skips: tuple[Skip, ...]

    @property
    def grid(self) -> int:
        """Number of all points."""
        return math.prod(len(values) for values in self.values.values())


def make_space(
    plan: Plan,
    config: RunConfig,
    machine: MachineReport,
    origins: Mapping[str, str],
    *,
    framework: str = "torch",
    own: Mapping[str, Sequence[Value]] | None = None,
    cpuinfo: str | None = None,
) -> Space:
    """Return what can be tried; what somebody typed or set in the environment stays as it is.

    Args:
        own: keys of the recipe's own section, to the values worth trying.
        cpuinfo: what the kernel says of the CPU; none: it is read.
    """
    start = settings_of(plan, config, own or ())
    skips: list[Skip] = []
    values: dict[str, tuple[Value, ...]] = {}
    for axis in start.axes():
        key = key_of(axis)
        if own is not None and axis in own:
            found: tuple[Value, ...] = tuple(own[axis])
            found = found if start.value(axis) in found else (start.value(axis), *found)
        elif framework != "torch" and axis in _TORCH_ONLY:
            found = (start.value(axis),)
        else:
            found = _values(axis, plan, machine, start, skips, cpuinfo)
        typed = [key, "batch.accumulation", "batch.all_devices"] if axis == "micro_batch" else [key]
        if any(layer_of(origins.get(one, "default")) in ("command line", "environment") for one in typed):
            skips.extend(_fixed(axis, found, start))
            found = (start.value(axis),)
        values[axis] = found
    return Space(values=values, skips=tuple(skips))


def _fixed(axis: str, found: Sequence[Value], start: Settings) -> list[Skip]:
    mine = start.value(axis)
    return [Skip(axis=axis, value=value, code="tune/skip-typed") for value in found if value != mine]


def _values(
    axis: str, plan: Plan, machine: MachineReport, start: Settings, skips: list[Skip], cpuinfo: str | None
) -> tuple[Value, ...]:
    share = max(1, machine.planned_cores // plan.world_size)
    match axis:
        case "micro_batch":
            return _rungs(plan.micro_batch * plan.accumulation, plan.micro_batch)
        case "precision":
            return _precisions(plan, machine, start, skips, cpuinfo)
        case "activation_checkpoint":
            return (False, True)
        case "compile":
            if plan.device == "cpu" and not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
                skips.append(Skip(axis=axis, value=True, code="tune/skip-no-compiler"))
                return (start.compile,)
            return (False, True)
        case "threads":
            # A rank on a GPU only feeds it; its threads were shared out already.
            return _doubling(1, share, start.threads) if plan.device == "cpu" else (start.threads,)
        case "workers":
            return (0, *_doubling(1, min(_MOST_WORKERS, share), max(1, start.workers)))
        case _:
            return tuple(sorted({2, 4, start.prefetch}))


def _precisions(
    plan: Plan, machine: MachineReport, start: Settings, skips: list[Skip], cpuinfo: str | None
) -> tuple[Value, ...]:
    if start.precision != "fp32":
        return (start.precision,)
    if plan.device == "cuda":
        gpus = [gpu for gpu in machine.gpus if gpu.physical in plan.gpus]
        is_new = all(has_bf16(gpu) for gpu in gpus)
        return ("fp32", "bf16" if is_new else "fp16")
    words = set((_read_cpuinfo() if cpuinfo is None else cpuinfo).split())
    if not words & set(_BF16_UNITS):
        skips.append(Skip(axis="precision", value="bf16", code="tune/skip-no-bf16"))
        return ("fp32",)
    return ("fp32", "bf16")


def _read_cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _rungs(each: int, current: int) -> tuple[Value, ...]:
    """Return micro-batches that divide a rank's samples of a step, about a factor of two apart, and the current."""
    divisors = [size for size in range(1, each + 1) if each % size == 0] if each <= 1 << 20 else [current, each]
    kept = [current]
    for size in (one for one in divisors if one > current):
        if size >= kept[-1] * _RATIO:
            kept.append(size)
    if kept[-1] != each:
        kept.append(each)
    for size in reversed([one for one in divisors if one < current]):
        if size * _RATIO <= kept[0]:
            kept.insert(0, size)
    return tuple(kept)


def _doubling(low: int, high: int, current: int) -> tuple[int, ...]:
    """Return 1, 2, 4 … up to a number, with both ends and the current value."""
    found = {low, high, current}
    size = low
    while size < high:
        found.add(size)
        size *= 2
    return tuple(sorted(found))
