"""The tiny work as a Headway task."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headway.config import RunConfig
from headway.task import Batch, Ids, Loss, ParamGroup, Task

from .work import make_data, make_model


class TinyData:
    """Rows of two tensors."""

    def __init__(self, samples: int) -> None:
        self._x, self._y = make_data(samples)

    def __len__(self) -> int:
        return len(self._x)

    def batch(self, ids: Ids, epochs: Ids) -> dict[str, Tensor]:
        """Return rows by index."""
        rows = torch.from_numpy(ids)
        return {"x": self._x[rows], "y": self._y[rows]}


class TinyTask(Task):
    """See engine/task.py."""

    best: tuple[str, Literal["min", "max"]] = ("loss", "min")

    def __init__(self, config: RunConfig) -> None:
        self._config, self._section = config, config.task

    def build_model(self) -> nn.Module:
        """Return the network."""
        return make_model(self._section.width)

    def train_data(self) -> TinyData:
        """Return the samples."""
        return TinyData(self._section.samples)

    eval_data = train_data

    def param_groups(self, model: nn.Module) -> Sequence[ParamGroup]:
        """Return one group."""
        return [ParamGroup(params=dict(model.named_parameters()), optimizer="adamw", lr=self._config.lr.base)]

    def blocks(self, model: nn.Module) -> Sequence[nn.Module]:
        """Return nothing to shard or recompute."""
        return ()

    frozen = blocks

    def data_id(self) -> Mapping[str, str]:
        """Return the size: the data is made from it."""
        return {"samples": str(self._section.samples)}

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Return the summed cross-entropy."""
        if self._section.pause_s:
            time.sleep(self._section.pause_s)
        return Loss(F.cross_entropy(model(batch["x"]), batch["y"], reduction="sum"), len(batch["y"]))

    def measures(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Return the loss over validation."""
        loss = F.cross_entropy(model(batch["x"]), batch["y"], reduction="sum")
        return {"loss": loss, "count": torch.tensor(float(len(batch["y"])))}

    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the mean loss."""
        return {"loss": sums["loss"] / sums["count"]}


def make_task(config: Any) -> TinyTask:
    """Return the task."""
    return TinyTask(config)
