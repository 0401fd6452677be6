"""The tiny recipe's model, data and loss."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from headway.task import Loss, ParamGroup, Task


def dist_rank():
    return dist.get_rank() if dist.is_initialized() else 0


def dist_size():
    return dist.get_world_size() if dist.is_initialized() else 1


def hang_once():
    """Sleep forever, unless another attempt has."""
    mark = Path("hung")
    if not mark.exists():
        mark.touch()
        time.sleep(600)


def run_out_of_memory(grad):
    raise torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 23.64 GiB"
    )


class Numbers:
    """Samples that are a pure function of their index, with noise that is one of (index, epoch)."""

    def __init__(self, size: int, section, seed: int) -> None:
        self._size, self._section = size, section
        rng = np.random.default_rng(seed)
        self._x = rng.standard_normal((size, 8)).astype(np.float32)
        self._y = np.sin(self._x @ rng.standard_normal((8, 2))).astype(np.float32)
        self._x[list(section.nan_samples)] = np.nan

    def __len__(self) -> int:
        return self._size

    def batch(self, ids, epochs):
        noise = ((ids * 7919 + epochs * 104729) % 1000 / 1000 - 0.5).astype(np.float32)
        count = ids % 5 + 1 if self._section.ragged else np.ones_like(ids)
        return {
            "x": torch.from_numpy(self._x[ids] + 0.01 * noise[:, None]),
            "y": torch.from_numpy(self._y[ids]),
            "count": torch.from_numpy(count),
        }


class TinyTask(Task):
    """See engine/task.py."""

    best = ("mse", "min")

    def __init__(self, config) -> None:
        self.config, self.section, self.calls = config, config.task, 0

    def build_model(self):
        section = self.section
        layers, width = [], 8
        for _ in range(section.depth):
            norm = [nn.BatchNorm1d(section.width)] if section.norm else []
            # Batch norm takes a bias out again: its gradient is rounding, which Adam makes into moves of full size.
            linear = nn.Linear(width, section.width, bias=not section.norm)
            layers.append(nn.Sequential(linear, *norm, nn.Tanh(), nn.Dropout(section.dropout)))
            width = section.width
        if section.tied:
            layers[2][0].weight = layers[1][0].weight
        return nn.Sequential(*layers, nn.Linear(width, 2))

    def train_data(self):
        return Numbers(self.section.samples, self.section, seed=1)

    def eval_data(self):
        return Numbers(self.section.held_out, self.section.model_copy(update={"nan_samples": ()}), seed=2)

    def param_groups(self, model):
        own = self.config.optimizer
        params = dict(model.named_parameters())
        if own.name != "muon":
            return [ParamGroup(params=params, optimizer=own.name, lr=self.config.lr.base)]
        matrices = {n: p for n, p in params.items() if p.ndim == 2}
        rest = {n: p for n, p in params.items() if p.ndim != 2}
        return [
            ParamGroup(params=matrices, optimizer="muon", lr=self.config.lr.base),
            ParamGroup(params=rest, optimizer="adamw", lr=self.config.lr.base),
        ]

    def blocks(self, model):
        return list(model)[:-1]

    def frozen(self, model):
        return ()

    def data_id(self):
        return {"samples": str(self.section.samples)}

    def loss(self, model, batch):
        self.calls += 1
        if self.section.sleep_s:
            time.sleep(self.section.sleep_s)
        if self.calls == self.section.fail_step and int(os.environ.get("RANK", "0")) == self.section.fail_rank:
            raise ValueError("the tiny task was told to fail")
        if self.calls == self.section.hang_step and dist_rank() == self.section.fail_rank:
            hang_once()
        is_gone = self.section.gone_of and dist_size() == self.section.gone_of and Path("gone").exists()
        if is_gone and dist_rank() == self.section.fail_rank:
            os.kill(os.getpid(), signal.SIGKILL)
        error = (model(batch["x"]) - batch["y"]).square().sum(1)
        if 0 < self.section.oom_above < len(error) and dist_rank() == self.section.fail_rank:
            error.register_hook(run_out_of_memory)
        if self.section.hold_mb:
            held = torch.empty(len(error), self.section.hold_mb << 20, dtype=torch.uint8)
            held[:, 0] = 1
        if self.section.is_mean:
            return Loss((error * torch.arange(1.0, 1 + len(error))).mean(), 1)
        return Loss((error * batch["count"]).sum(), batch["count"].sum())

    def die(self, phase):
        """Let the process be killed in this phase, unless it was before."""
        mark = Path("died")
        if self.section.die_in == phase and dist_rank() == self.section.fail_rank and not mark.exists():
            while not list(Path().glob("runs/*/checkpoints/latest")):
                time.sleep(0.02)  # what was saved before this phase is on disk
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def trial(self, model, *, part, parts):
        self.die("trial")
        time.sleep(self.section.eval_sleep_s)
        return {}

    def measures(self, model, batch):
        self.die("validation")
        time.sleep(self.section.eval_sleep_s)
        is_gone = self.section.gone_of and dist_size() == self.section.gone_of and Path("gone").exists()
        if is_gone and dist_rank() == self.section.fail_rank:
            os.kill(os.getpid(), signal.SIGKILL)
        error = (model(batch["x"]) - batch["y"]).square().sum(1)
        return {"error": error.sum(), "count": torch.tensor(float(len(error)))}

    def summarize(self, sums):
        return {"mse": sums["error"] / sums["count"]}


def make_task(config):
    return TinyTask(config)
