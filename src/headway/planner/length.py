"""How long the run is: steps, samples or epochs, whichever was given last, in samples.

A run that continues is as long as what it has done plus what is left. What it has done is counted in samples, so a
batch that changes on the way leaves both numbers in one unit, and the learning rate, which follows them, falls at the
end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headway.config import TrainConfig
from headway.errors import ConfigError
from headway.planner.record import Plan

_KEYS = ("steps", "samples", "epochs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a run has done so far."""

    step: int = 0
    """Optimizer steps."""
    samples: int = 0
    """Samples it has trained on."""


FRESH = Standing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """The run in samples and optimizer steps."""

    key: str
    """The key that decided: `steps`, `samples` or `epochs`."""
    total_samples: int
    total_steps: int
    epochs: float | None
    """Passes over the training set, where its size is known."""
    overruled: tuple[str, ...] = ()
    """Keys a lower layer had set: a preset's steps under a command line's epochs."""


def resolve_length(
    train: TrainConfig,
    *,
    batch_samples: int,
    train_samples: int | None,
    layers: Mapping[str, int] | None = None,
    done: Standing = FRESH,
) -> Length:
    """Return the length of the run; the last step may be a partial one.

    Args:
        layers: rank of the layer that set each key; of several keys the one from the highest layer decides.
        done: what the run has done, perhaps with another batch.
    """
    key, overruled = _choose(train, layers or {})
    if key == "steps":
        steps = max(train.steps or 0, done.step)  # what is taken stays taken, whatever is asked for now
        total = _samples_of(steps, batch_samples, done)
    else:
        total = _total_samples(train, key, train_samples)
        steps = _steps_to(total, batch_samples, done)
    return Length(
        key=key,
        total_samples=total,
        total_steps=steps,
        epochs=total / train_samples if train_samples else None,
        overruled=overruled,
    )


def continue_plan(plan: Plan, done: Standing) -> Plan:
    """Return the plan of a run that has done this much, perhaps with another batch than the plan's."""
    if plan.length == "steps":
        return replace(plan, total_samples=_samples_of(plan.total_steps, plan.batch_samples, done))
    if plan.length in _KEYS:
        return replace(plan, total_steps=_steps_to(plan.total_samples, plan.batch_samples, done))
    return plan  # a run of an earlier version, whose batch never changed


def _samples_of(steps: int, batch_samples: int, done: Standing) -> int:
    return done.samples + max(0, steps - done.step) * batch_samples


def _steps_to(total_samples: int, batch_samples: int, done: Standing) -> int:
    return done.step + max(0, -(-(total_samples - done.samples) // batch_samples))


def _choose(train: TrainConfig, layers: Mapping[str, int]) -> tuple[str, tuple[str, ...]]:
    given = [key for key in _KEYS if getattr(train, key) is not None]
    if not given:
        raise ConfigError("plan/no-length")
    top = max(layers.get(f"train.{key}", 0) for key in given)
    highest = [key for key in given if layers.get(f"train.{key}", 0) == top]
    if len(highest) > 1:
        raise ConfigError("plan/length-twice", given=" ".join(f"train.{key}={getattr(train, key)}" for key in highest))
    return highest[0], tuple(key for key in given if key != highest[0])


def _total_samples(train: TrainConfig, key: str, train_samples: int | None) -> int:
    if key == "samples":
        return train.samples or 0
    if not train_samples:
        raise ConfigError("plan/epochs-unknown", epochs=train.epochs)
    return max(1, round((train.epochs or 0.0) * train_samples))
