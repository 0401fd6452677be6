"""What a recipe tells the control side about itself, without importing a framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.config.schema import Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A recipe's name, typed section, presets and where its task lives."""

    name: str
    section: type[Section]
    """Type of the `task` section of the config."""
    task: str
    """Module that holds `make_task(config)`; imported by ranks only."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Dotted keys the recipe sets over the general defaults (`"batch.total": 64`)."""
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Preset name to dotted keys and values."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The guide's own key names, flat, to dotted keys (`"device_batch_size": "batch.per_device"`)."""
    implied: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What a guide key also means: `"total_batch_size": {"batch.unit": "tokens"}`."""
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Guide keys that have no effect here, to the reason (a message code)."""
    tokens_per_sample: Callable[[Any], int] | None = None
    """Tokens of one sample, from the task section; none: samples have no tokens."""
    train_samples: Callable[[Any], int | None] | None = None
    """Training samples in one epoch, when the data is ready and can be counted without a framework."""
    baselines: Callable[[Any], Mapping[str, float]] | None = None
    """What constant answers score, from the task section: `{"unigram_bpb": 2.1}` stands beside the measure `bpb`."""
    prepare: str | None = None
    """Module with `prepare(section, say)`: makes or checks data on disk before ranks start (no framework)."""
    predict: type[Section] | None = None
    """Options of `headway predict`; none: the recipe cannot predict."""
    preload: tuple[str, ...] = ()
    """Modules worth importing once before ranks are forked."""
