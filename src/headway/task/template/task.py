"""What the recipe mytask learns: samples, model, loss and measures. Only the training processes import this file.

The training loop owns the rest: gradient accumulation, clipping, precision, several GPUs, checkpoints, resuming.
"""

from itertools import pairwise

import torch
from torch import nn
from torch.utils.data import Dataset

from headway.task import Loss, Samples, Task, make_groups


class Points(Dataset):
    """Points of a sine wave, as an example. Put your own data set here: it needs __len__ and __getitem__."""

    def __init__(self, size, start):
        self.size, self.start = size, start

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        x = torch.tensor([0.37 * (self.start + index) % 6.0 - 3.0])
        # Random draws of torch, numpy and random are seeded per sample, so a resumed run sees the same ones.
        return {"x": x + 0.01 * torch.randn(1), "y": torch.sin(x)}


class MytaskTask(Task):
    """Fits a small network to the points."""

    best = ("mse", "min")  # the measure that decides which checkpoint is best

    def __init__(self, config):
        self.config, self.section = config, config.task

    def build_model(self):
        width = self.section.width
        sizes = [1] + [width] * self.section.depth
        hidden = [nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in pairwise(sizes)]
        return nn.Sequential(*hidden, nn.Linear(width, 1))

    def blocks(self, model):
        """Return the repeated parts: FSDP shards them one by one, activation checkpointing recomputes them."""
        return list(model)[:-1]

    def param_groups(self, model):
        """Return what trains, with the optimizer the config asks for (optimizer.name=adamw, adam, muon or sgd)."""
        return make_groups(model, self.blocks(model), self.config.optimizer, lr=self.config.lr.base)

    def train_data(self):
        return Samples(Points(self.section.samples, start=0), seed=self.config.seed)

    def eval_data(self):
        return Samples(Points(200, start=self.section.samples), seed=self.config.seed)

    def data_id(self):
        """Return what identifies the training data; a run is not resumed with other data."""
        return {"samples": str(self.section.samples)}

    def loss(self, model, batch):
        """Return a sum and a count, not a mean: the loop divides, over all ranks and micro-batches."""
        error = (model(batch["x"]) - batch["y"]).square()
        return Loss(error.sum(), error.numel())

    def measures(self, model, batch):
        """Return sums over one validation batch; the loop adds them up."""
        error = (model(batch["x"]) - batch["y"]).square()
        return {"error": error.sum(), "count": torch.tensor(float(error.numel()))}

    def summarize(self, sums):
        """Turn the sums into the measures people read."""
        return {"mse": sums["error"] / sums["count"]}


def make_task(config):
    """Return the task; this is the name the training processes look for."""
    return MytaskTask(config)
