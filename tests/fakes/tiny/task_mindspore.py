"""The tiny recipe in MindSpore: the same numbers, a smaller network, and a frozen weight of no dimension."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn

from headway.task.mindspore import MindTask, Settings


class Arrays:
    """Samples that are a pure function of their index."""

    def __init__(self, size: int, nan_samples, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.x = rng.standard_normal((size, 8)).astype(np.float32)
        self.y = np.sin(self.x @ rng.standard_normal((8, 2))).astype(np.float32)
        self.x[list(nan_samples)] = np.nan

    def __len__(self) -> int:
        return len(self.x)

    def arrays(self, ids, epochs):
        return {"x": self.x[ids], "y": self.y[ids]}


class TinyLoss(nn.Cell):
    """The sum of squares, and each sample's."""

    def __init__(self, has_norm: bool) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        self.first = Parameter(Tensor(rng.standard_normal((8, 4)).astype(np.float32)), name="first")
        self.last = Parameter(Tensor(rng.standard_normal((4, 2)).astype(np.float32)), name="last")
        self.factor = Parameter(Tensor(0.5, ms.float32), name="factor", requires_grad=False)
        self.norm = nn.BatchNorm1d(4, momentum=0.9) if has_norm else nn.Identity()

    def construct(self, x, y):
        error_B = ((ms.ops.tanh(self.norm(x @ self.first)) @ self.last * self.factor - y) ** 2).sum(1)
        return error_B.sum(), error_B.reshape(1, -1)


class TinyMindTask(MindTask):
    """See engine/mindspore/task.py."""

    best = ("mse", "min")
    inputs = ("x", "y")
    measure_names = ("error", "loss", "count")
    settings = Settings(is_graph=False, prefetch=0)

    def __init__(self, config) -> None:
        self.section = config.task

    def build_loss(self):
        return TinyLoss(self.section.norm)

    def names(self, loss):
        return {param.name: param for param in loss.get_parameters()}

    def train_data(self):
        return Arrays(self.section.samples, self.section.nan_samples, seed=1)

    def eval_data(self):
        return Arrays(self.section.held_out, (), seed=2)

    def data_id(self):
        return {"samples": str(self.section.samples)}

    def measures(self, total, output, batch):
        return {"error": float(output.sum()), "loss": total, "count": float(len(batch["x"]))}

    def summarize(self, sums):
        return {"mse": sums["error"] / sums["count"], "loss": sums["loss"] / sums["count"]}

    def describe(self, step, measures):
        return {"step": step, "measures": dict(measures)}

    def check_export(self, described):
        return None

    def predict(self, loss, options, out):
        return ""


def make_task(config):
    return TinyMindTask(config)
