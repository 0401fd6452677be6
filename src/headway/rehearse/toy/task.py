"""What the ranks of a rehearsal train."""

import time

import torch
from torch import nn

from headway.task import Loss, Task, make_groups


class Points:
    """Points of a sine wave, a pure function of their index."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def batch(self, ids, epochs):
        """Return the samples with these indexes."""
        x = torch.from_numpy(ids).float()[:, None] * 0.37 % 6.0 - 3.0
        return {"x": x, "y": torch.sin(x)}


class ToyTask(Task):
    """Fits a small network to the points."""

    best = ("mse", "min")

    def __init__(self, config):
        self.config, self.section = config, config.task

    def build_model(self):
        """Return the network."""
        return nn.Sequential(nn.Sequential(nn.Linear(1, 64), nn.Tanh()), nn.Linear(64, 1))

    def blocks(self, model):
        """Return the repeated parts."""
        return list(model)[:-1]

    def frozen(self, model):
        """Nothing is frozen."""
        return ()

    def param_groups(self, model):
        """Return what trains."""
        return make_groups(model, self.blocks(model), self.config.optimizer, lr=self.config.lr.base)

    def train_data(self):
        """Return the training set."""
        return Points(self.section.samples)

    def eval_data(self):
        """Return the validation set."""
        return Points(64)

    def data_id(self):
        """Return what identifies the data."""
        return {"samples": str(self.section.samples)}

    def loss(self, model, batch):
        """Return a sum and a count, and take memory as a real model does."""
        held = torch.empty(len(batch["x"]), self.section.hold_mb << 20, dtype=torch.uint8)
        time.sleep(self.section.pause_s)
        error = (model(batch["x"]) - batch["y"]).square()
        del held
        return Loss(error.sum(), error.numel())

    def measures(self, model, batch):
        """Return sums over one validation batch."""
        error = (model(batch["x"]) - batch["y"]).square()
        return {"error": error.sum(), "count": torch.tensor(float(error.numel()))}

    def summarize(self, sums):
        """Turn the sums into the measures people read."""
        return {"mse": sums["error"] / sums["count"]}


def make_task(config):
    """Return the task."""
    return ToyTask(config)
