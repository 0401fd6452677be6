"""The sized recipe's model, data and loss: every weight is looked up at a few rows, so a step costs one pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

from headway.task import Loss, ParamGroup, Prediction, Task

_WIDTH = 64
_BLOCKS = 4


class Block(nn.Module):
    """Some of the weights."""

    def __init__(self, num: int, rows: int) -> None:
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(0.01 * torch.randn(rows, _WIDTH)) for _ in range(num)])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.stack([weight[ids % weight.shape[0]].sum(1) for weight in self.weights]).sum(0)


class Sized(nn.Module):
    """All of the weights."""

    def __init__(self, num: int, rows: int) -> None:
        super().__init__()
        shares = [num * (k + 1) // _BLOCKS - num * k // _BLOCKS for k in range(_BLOCKS)]
        self.blocks = nn.ModuleList([Block(share, rows) for share in shares if share])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.stack([block(ids) for block in self.blocks]).sum(0)


class Samples:
    """A sample is a number: its index, or what is in its file."""

    def __init__(self, size: int, files: str) -> None:
        self._size, self._files = size, Path(files) if files else None

    def __len__(self) -> int:
        return self._size

    def batch(self, ids, epochs):
        values = [int((self._files / f"{i // 1000:05d}" / f"{i}.txt").read_text()) if self._files else i for i in ids]
        return {"x": torch.from_numpy(np.asarray(values, dtype=np.int64) * 7919)}


class SizedTask(Task):
    """See engine/task.py."""

    best = ("error", "min")

    def __init__(self, config) -> None:
        self.config, self.section = config, config.task

    def build_model(self):
        rows = self.section.state_mb * 1_000_000 // 12 // _WIDTH // self.section.tensors
        return Sized(self.section.tensors, max(1, rows))

    def train_data(self):
        return Samples(self.section.samples, self.section.files)

    def eval_data(self):
        return Samples(8, "")

    def param_groups(self, model):
        return [ParamGroup(params=dict(model.named_parameters()), optimizer="adamw", lr=self.config.lr.base)]

    def blocks(self, model):
        return list(model.blocks)

    def frozen(self, model):
        return ()

    def data_id(self):
        return {"samples": str(self.section.samples)}

    def loss(self, model, batch):
        error = (model(batch["x"]) - 1).square()
        return Loss(error.sum(), torch.tensor(error.numel()))

    def measures(self, model, batch):
        error = (model(batch["x"]) - 1).square()
        return {"error": error.sum(), "count": torch.tensor(float(error.numel()))}

    def summarize(self, sums):
        return {"error": sums["error"] / sums["count"]}

    def predict(self, model, options, out):
        value = float(model(torch.tensor([options["row"]]))[0])
        return Prediction(text=f"{value:.6f}", files=())


def make_task(config):
    return SizedTask(config)
