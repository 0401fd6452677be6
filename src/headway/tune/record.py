"""The records of a search: what was set, what a probe found, what came out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from headway.config import RunConfig
from headway.planner import Plan

KEYS: Mapping[str, str] = {
    "precision": "train.precision",
    "micro_batch": "batch.per_device",
    "threads": "parallel.threads",
    "activation_checkpoint": "train.activation_checkpoint",
    "compile": "train.compile",
    "workers": "parallel.workers",
    "prefetch": "parallel.prefetch",
}
"""What is searched, in the order it is searched, to its key in the config. A small micro-batch can leave nothing for a
second thread to do, so threads come after it."""

Value = int | bool | str
Ending = Literal["ok", "out-of-memory", "failed", "too-slow", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One point of the search. None of it changes which samples make a step."""

    micro_batch: int
    precision: Literal["fp32", "bf16", "fp16"]
    activation_checkpoint: bool
    compile: bool
    threads: int
    workers: int
    prefetch: int
    own: tuple[tuple[str, Value], ...] = ()
    """Keys of the recipe's own section that are searched (`task.graph_mode`), and their values."""

    def axes(self) -> tuple[str, ...]:
        """Return what can be moved; an axis of the recipe's own is named by its key."""
        return (*KEYS, *(key for key, _ in self.own))

    def value(self, axis: str) -> Value:
        """Return the value on one axis."""
        found: Value = getattr(self, axis) if axis in KEYS else dict(self.own)[axis]
        return found

    def moved(self, axis: str, value: Value) -> Settings:
        """Return the point with another value on one axis."""
        if axis not in KEYS:
            return replace(self, own=tuple((key, value if key == axis else old) for key, old in self.own))
        changed: dict[str, Any] = {axis: value}
        return replace(self, **changed)

    def words(self, before: Settings | None = None) -> str:
        """Return the settings as they are typed; with another point, only where they differ."""
        return " ".join(
            f"{key_of(axis)}={write_value(self.value(axis))}"
            for axis in self.axes()
            if before is None or self.value(axis) != before.value(axis)
        )


def key_of(axis: str) -> str:
    """Return the dotted key of an axis."""
    return KEYS.get(axis, axis)


def write_value(value: Value) -> str:
    """Return a value as YAML and the command line spell it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def settings_of(plan: Plan, config: RunConfig, own: Iterable[str] = ()) -> Settings:
    """Return the point at which a plan is.

    Args:
        own: keys of the recipe's own section that are searched.
    """
    section = config.model_dump(mode="json")["task"] if own else {}
    return Settings(
        micro_batch=plan.micro_batch,
        precision=plan.precision,
        activation_checkpoint=config.train.activation_checkpoint,
        compile=config.train.compile,
        threads=plan.threads,
        workers=plan.workers,
        prefetch=config.parallel.prefetch,
        own=tuple((key, section[key.removeprefix("task.")]) for key in own),
    )


def apply_settings(settings: Settings, plan: Plan, config: RunConfig) -> tuple[Plan, RunConfig]:
    """Return plan and config of a point; the effective batch stays."""
    each = plan.micro_batch * plan.accumulation
    changed = replace(
        plan,
        micro_batch=settings.micro_batch,
        accumulation=each // settings.micro_batch,
        precision=settings.precision,
        threads=settings.threads,
        workers=settings.workers,
        forecast=None,
        rows=(),
    )
    train = config.train.model_copy(
        update={
            "precision": settings.precision,
            "activation_checkpoint": settings.activation_checkpoint,
            "compile": settings.compile,
        }
    )
    parallel = config.parallel.model_copy(
        update={"threads": settings.threads, "workers": settings.workers, "prefetch": settings.prefetch}
    )
    update: dict[str, Any] = {"train": train, "parallel": parallel}
    if settings.own:
        own = {key.removeprefix("task."): value for key, value in settings.own}
        update["task"] = config.task.model_copy(update=own)
    return changed, config.model_copy(update=update)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One point, tried."""

    number: int
    settings: Settings
    ending: Ending
    samples_s: float = 0.0
    step_s: float | None = None
    first_s: float | None = None
    """Of a step of one micro-batch."""
    more_s: float | None = None
    """Of each further micro-batch."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Seconds of data, forward, backward, comm and optimizer in a step of one micro-batch, where the host can tell."""
    peak_bytes: int | None = None
    forecast_bytes: int | None = None
    """What the memory forecast had said."""
    took_s: float = 0.0
    code: str = ""
    """Message code of why it ended badly."""
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        """Whether it has a rate."""
        return self.ending == "ok"

    def data_share(self) -> float | None:
        """Return the share of a step spent waiting for data, where it is known."""
        whole = sum(self.parts.values())
        return self.parts.get("data", 0.0) / whole if whole > 0 else None

    def to_json(self) -> dict[str, Any]:
        """Return the line of tune.jsonl."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """A value that was not tried, and why."""

    axis: str
    value: Value
    code: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """How a search ended."""

    start: Probe
    best: Probe
    probes: tuple[Probe, ...]
    skips: tuple[Skip, ...]
    grid: int
    """Points of the whole grid."""
    is_cut: bool
    """The budget ended it."""

    @property
    def gain(self) -> float | None:
        """Return how much faster the best point is than where the search began; none: that did not run."""
        return self.best.samples_s / self.start.samples_s if self.start.is_ok else None

    def to_json(self) -> dict[str, Any]:
        """Return the result as it is in tune.json."""
        return {
            "schema": "tune/1",
            "start": self.start.to_json(),
            "best": self.best.to_json(),
            "settings": self.best.settings.words(self.start.settings),
            "gain": self.gain,
            "probes": [probe.to_json() for probe in self.probes],
            "skips": [asdict(one) for one in self.skips],
            "grid": self.grid,
            "is_cut": self.is_cut,
        }
