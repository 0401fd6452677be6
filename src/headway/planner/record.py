"""The record the plan stage hands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One line of the plan table: a quantity, its value and where the value came from."""

    key: str
    """What it is; also the message code `plan/row-<key>`."""
    value: str
    origin: str
    """`config file:line`, `command line`, `preset balanced`, `default`, or the arithmetic that gave it."""
    value_code: str = ""
    """Message code of the value, when it is a sentence and not a number."""
    origin_code: str = ""
    """Message code of the origin, when it is a reason and not a place."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Facts of the two messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWarning:
    """Something that works and is probably not wanted; its words are the message of its code."""

    code: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How one run is laid out on one machine."""

    world_size: int
    """Ranks of the run."""
    device: Literal["cpu", "cuda"]
    gpus: tuple[int, ...]
    """GPU of each local rank by the driver's own number (PCI order), for CUDA_VISIBLE_DEVICES; empty on CPU."""
    backend: Literal["gloo", "nccl"]
    strategy: Literal["single", "ddp", "fsdp"]
    precision: Literal["fp32", "bf16", "fp16"]
    threads: int
    """CPU threads per rank."""
    workers: int
    """Data loader processes per rank."""
    micro_batch: int
    """Samples one rank takes through forward and backward at a time."""
    accumulation: int
    """Micro-batches one rank adds up before a step; where they are dealt out unevenly, the most."""
    batch_samples: int
    """Samples of one optimizer step, all ranks: world_size * micro_batch * accumulation, or less where ranks were lost
    and the same batch is dealt out unevenly over the rest."""
    tokens_per_sample: int | None
    total_samples: int
    total_steps: int
    lr_factor: float
    """Every group's base learning rate is multiplied by this: the rule for the effective batch, applied."""
    warmup_samples: int
    rows: tuple[PlanRow, ...] = ()
    warnings: tuple[PlanWarning, ...] = ()
    gpu_uuids: tuple[str, ...] = ()
    """The same GPUs by name, for CUDA_VISIBLE_DEVICES; empty where the driver does not tell."""
    epoch_samples: int | None = None
    """Samples of one pass over the training set, where they can be counted."""
    code_id: str = ""
    """Fingerprint of the recipe's code; what was traced or measured with other code does not count for this plan."""
    forecast: Mapping[str, Any] | None = None
    """Memory and time as foreseen (`Forecast.to_json`); none: nothing is known of the model yet."""
    is_offloaded: bool = False
    """Whether sharded weights, gradients and optimizer state are in host memory."""
    length: str = ""
    """What fixes the end of the run: `steps`, or `samples` or `epochs`, which are both counted in samples."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as it is in plan.json."""
        return {"schema": "plan/1", **asdict(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Plan:
        """Read the record back."""
        known = {f.name for f in fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        values["gpus"] = tuple(values["gpus"])
        values["gpu_uuids"] = tuple(values.get("gpu_uuids", ()))
        values["rows"] = tuple(PlanRow(**row) for row in values.get("rows", ()))
        values["warnings"] = tuple(PlanWarning(**one) for one in values.get("warnings", ()))
        return cls(**values)
