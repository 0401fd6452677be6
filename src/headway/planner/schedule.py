"""The learning rate as a function of samples, which makes the curve the same for any batch and world size."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from headway.config import LrConfig
from headway.errors import ConfigError
from headway.planner.length import FRESH, Standing
from headway.planner.record import Plan
from headway.planner.row_text import COMMAND_LAYER, rank_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LrSchedule:
    """The curve of one run, in samples."""

    shape: Literal["constant", "cosine", "linear", "multistep"]
    batch_samples: int
    total_samples: int
    warmup_samples: int
    decay: float
    """Last share of the run over which `linear` falls."""
    final: float
    milestones: tuple[float, ...]
    """Samples, rising, at which `multistep` multiplies by gamma."""
    gamma: float


def make_schedule(lr: LrConfig, plan: Plan) -> LrSchedule:
    """Return the curve that the config asks for over the plan's samples."""
    return LrSchedule(
        shape=lr.schedule,
        batch_samples=plan.batch_samples,
        total_samples=plan.total_samples,
        warmup_samples=plan.warmup_samples,
        decay=lr.decay,
        final=lr.final if lr.min is None else lr.min / (lr.base * plan.lr_factor),
        milestones=tuple(sorted(share * plan.total_samples for share in lr.milestones)),
        gamma=lr.gamma,
    )


def lr_at(samples: int, schedule: LrSchedule) -> float:
    """Return the factor on every group's rate for the step that begins after `samples` samples.

    Warm-up looks at the end of the step and decay at its beginning, so neither the first step of a rise from zero
    nor the last one of a fall to zero is wasted.
    """
    factor = _shape_at(samples, schedule)
    risen = samples + schedule.batch_samples
    return factor * risen / schedule.warmup_samples if risen < schedule.warmup_samples else factor


def _shape_at(samples: int, schedule: LrSchedule) -> float:
    total = schedule.total_samples
    if schedule.shape == "constant":
        return 1.0
    if schedule.shape == "multistep":
        return schedule.gamma ** bisect_right(schedule.milestones, samples)
    if schedule.shape == "cosine":
        span = total - schedule.warmup_samples
        # A warm-up as long as the run or longer leaves nothing to fall over: the rate rises to the last step.
        done = (samples - schedule.warmup_samples) / span if span > 0 else 0.0
        left = 0.5 + 0.5 * math.cos(math.pi * min(1.0, max(0.0, done)))
    else:
        fall = schedule.decay * total
        left = min(1.0, max(0.0, (total - samples) / fall)) if fall > 0 else 1.0
    return schedule.final + (1.0 - schedule.final) * left


def choose_warmup(
    lr: LrConfig, origins: Mapping[str, str], *, batch_samples: int, before: Plan | None = None, done: Standing = FRESH
) -> tuple[str, int]:
    """Return the key that says how long the rate rises, and that in samples; of two keys the higher layer decides.

    Steps that are still to be taken count in samples of the batch they will have. A rise that is over stays where it
    was: a cosine begins at its end.

    Args:
        before: the plan of the run that continues.
        done: what that run has done.
    """
    keys = ("lr.warmup_steps", "lr.warmup_samples")
    in_steps, in_samples = (rank_of(origins.get(key, "default")) for key in keys)
    if lr.warmup_steps is None or in_samples > in_steps:
        return keys[1], lr.warmup_samples
    steps = lr.warmup_steps
    if done.step < steps:
        return keys[0], done.samples + (steps - done.step) * batch_samples
    if before is not None and max(in_steps, in_samples) < COMMAND_LAYER:
        return keys[0], min(before.warmup_samples, done.samples)
    return keys[0], done.samples * steps // max(1, done.step)


def lr_factor(lr: LrConfig, *, batch: int) -> float:
    """Return the factor the rule for the effective batch gives; `batch` is in `batch.unit`, as `lr.base_batch` is."""
    if lr.base_batch is None or lr.scaling == "none":
        return 1.0
    ratio = batch / lr.base_batch
    return math.sqrt(ratio) if lr.scaling == "sqrt" else ratio


def check_floor(lr: LrConfig, factor: float) -> None:
    """Refuse a floor above the rate itself: the rate would rise to it."""
    if lr.min is not None and lr.min > lr.base * factor:
        raise ConfigError("plan/min-over-rate", least=f"{lr.min:g}", rate=f"{lr.base * factor:g}")


def draw_curve(schedule: LrSchedule, width: int = 16) -> str:
    """Return the curve of the whole run as a line of blocks, `▁▃▆███▆▃▁`."""
    blocks = "▁▂▃▄▅▆▇█"
    heights = []
    for column in range(width):
        at = schedule.total_samples * column // max(1, width - 1)
        heights.append(lr_at(min(at, schedule.total_samples), schedule))
    top = max(heights) or 1.0
    return "".join(blocks[min(7, int(height / top * 7.999))] for height in heights)
