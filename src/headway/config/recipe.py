"""What a recipe tells the control side about itself, without importing a framework."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headway.config.schema import RunConfig, Section
from headway.weights import Upstream

Warnings = Sequence[tuple[str, Mapping[str, str]]]
"""Message codes and their facts."""

SIZED_PRESETS = ("conservative", "balanced", "aggressive")
"""Presets every recipe has: the plan computes their micro-batch from the memory of the machine at hand."""


class Forecast(Protocol):
    """What one rank's memory comes to on a device, with fragments and the context."""

    @property
    def used_bytes(self) -> float:
        """What the driver shows."""
        ...

    def judge(self, device_bytes: float) -> str:
        """Say `fits`, `tight` or `will-not-fit` for a device of this size."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A planned run, as far as a recipe may have something to say about it."""

    config: RunConfig
    world_size: int
    per_device: int
    """Samples one rank takes at a time."""
    accumulation: int
    is_sharded: bool
    """Whether parameters, gradients and optimizer state are spread over the ranks."""
    device_bytes: int | None
    """Memory of the smallest GPU in use; none on CPU."""
    guide_names: Mapping[str, str]
    """Dotted key to the guide's own name, for values that were written with it."""
    forecast: Callable[[Mapping[str, float], int], Forecast]
    """The planner's forecast of what a rank holds at its peak, by name in bytes, and of so many ranks."""


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
    """What constant answers score, from the task section: `{"unigram_bpb": 2.1}` is beside the measure `bpb`."""
    shape: Callable[[Any], Mapping[str, Any]] | None = None
    """The model's shape in the words of the planner's decoder family, from the section; none: only a trace tells."""
    rate_key: str | None = None
    """Key of the section by which the first group's learning rate is multiplied (`matrix_lr`): what lines and plots of
    the run show is that group's; none: `lr.base` itself."""
    advise: Callable[[Situation], Warnings] | None = None
    """What works and is probably not wanted: traps that only this recipe knows of, shown with the plan."""
    prepare: str | None = None
    """Module with `prepare(section, say)`: makes or checks data on disk before ranks start (no framework)."""
    predict: type[Section] | None = None
    """Options of `headway predict`; none: the recipe cannot predict."""
    preload: tuple[str, ...] = ()
    """Modules worth importing once before ranks are forked."""
    framework: Callable[[Any], str] | None = None
    """What the ranks train with, from the task section: `torch` or `mindspore`; none: torch."""
    tunable: Callable[[Any, str], Mapping[str, Sequence[bool | int | str]]] | None = None
    """Keys of the section that change a step's speed, to values worth trying, from the section and `cpu` or `cuda`."""
    task_mindspore: str | None = None
    """Module that holds `make_task(config)` for MindSpore's engine, where the recipe has one."""
    upstream: Upstream | None = None
    """Names and layout of weights in the files of the system it comes from; none: only our own are read."""
    folder: Path | None = None
    """Folder of its code; filled in where the recipe is found by name."""

    @property
    def code_id(self) -> str:
        """Fingerprint of its Python files: what was measured or traced with other code says nothing about this one."""
        digest = hashlib.sha256(self.name.encode())
        if self.folder is not None:
            for path in sorted(self.folder.rglob("*.py")):
                digest.update(f"{path.relative_to(self.folder)}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
        return digest.hexdigest()[:16]
