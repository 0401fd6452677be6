"""How long the run is: steps, samples or epochs, whichever was given last, in samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headway.config import TrainConfig
from headway.errors import ConfigError

_KEYS = ("steps", "samples", "epochs")


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
    train: TrainConfig, *, batch_samples: int, train_samples: int | None, layers: Mapping[str, int] | None = None
) -> Length:
    """Return the length of the run; the last step may be a partial one.

    Args:
        layers: rank of the layer that set each key; of several keys the one from the highest layer decides.
    """
    key, overruled = _choose(train, layers or {})
    total = _total_samples(train, key, batch_samples, train_samples)
    return Length(
        key=key,
        total_samples=total,
        total_steps=-(-total // batch_samples),
        epochs=total / train_samples if train_samples else None,
        overruled=overruled,
    )


def _choose(train: TrainConfig, layers: Mapping[str, int]) -> tuple[str, tuple[str, ...]]:
    given = [key for key in _KEYS if getattr(train, key) is not None]
    if not given:
        raise ConfigError("plan/no-length")
    top = max(layers.get(f"train.{key}", 0) for key in given)
    highest = [key for key in given if layers.get(f"train.{key}", 0) == top]
    if len(highest) > 1:
        raise ConfigError("plan/length-twice", given=" ".join(f"train.{key}={getattr(train, key)}" for key in highest))
    return highest[0], tuple(key for key in given if key != highest[0])


def _total_samples(train: TrainConfig, key: str, batch_samples: int, train_samples: int | None) -> int:
    if key == "steps":
        return (train.steps or 0) * batch_samples
    if key == "samples":
        return train.samples or 0
    if not train_samples:
        raise ConfigError("plan/epochs-unknown", epochs=train.epochs)
    return max(1, round((train.epochs or 0.0) * train_samples))
