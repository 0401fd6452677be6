"""A small recipe with every feature the config stage reads from one."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from headway.config import Recipe, Section
from headway.errors import ConfigError


class ModelSection(Section):
    """Nested section."""

    width: Annotated[int, Field(ge=1)] = 8
    """Channels."""
    kind: Literal["small", "large"] = "small"
    """Size by name."""


class ToySection(Section):
    """The toy's own keys."""

    depth: Annotated[int, Field(ge=1)] = 4
    """Blocks."""
    vocab: int = 100
    """Words."""
    data: str = "here"
    """Where the data is."""
    eval_tokens: int = 10
    """Tokens of one validation."""
    pad_token: str = "<pad>"
    """Entry of the vocabulary."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Whatever else."""
    model: ModelSection = Field(default_factory=lambda: ModelSection(width=16))
    """A section in a section."""

    @model_validator(mode="after")
    def _agree(self) -> ToySection:
        if self.depth > self.vocab:
            raise ConfigError("config/refused", key="task.depth", why="more depth than vocab")
        return self


RECIPE = Recipe(
    name="toy",
    section=ToySection,
    task="toy.task",
    defaults={"batch.per_device": 8, "lr.schedule": "linear"},
    presets={
        "balanced": {"task.depth": 16, "batch.total": 64, "lr.milestones": (0.5, 0.9)},
        "broken": {"batch.total": -1},
    },
    aliases={
        "device_batch_size": "batch.per_device",
        "total_batch_size": "batch.total",
        "data.batch_size": "batch.per_device",
        "max_depth": "task.depth",
    },
    implied={"total_batch_size": {"batch.unit": "tokens"}},
    ignored={"use_wandb": "config/place-command-line"},
)
