"""Which parameters are Muon's, and what happens when a recipe leaves the wanted optimizer out."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fakes.engine_run import make_run
from headway.config import OptimizerConfig
from headway.engine.optim import make_optimizers
from headway.engine.parallel import Ranks, Replicated
from headway.errors import ConfigError
from headway.task import ParamGroup, make_groups

ALONE = Ranks(0, 1, 0, torch.device("cpu"))


class Net(nn.Module):
    """A block with all kinds of parameters, between an input and an output."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Linear(3, 4)
        parts = {
            "linear": nn.Linear(4, 6),
            "conv": nn.Conv2d(4, 8, 3),
            "norm": nn.BatchNorm2d(8),
            "table": nn.Embedding(5, 4),
            "gates": nn.LSTM(4, 4),
            "row": nn.Linear(4, 1, bias=False),
            "frozen": nn.Linear(4, 4).requires_grad_(False),
        }
        self.block = nn.ModuleDict(parts)
        self.outside = nn.Linear(6, 2)


def test_muon_takes_the_matrices_and_kernels_of_the_blocks():
    model = Net()
    muon, rest = make_groups(model, [model.block], OptimizerConfig(name="muon", weight_decay=0.1), lr=0.5)
    assert set(muon.params) == {"block.linear.weight", "block.conv.weight"}
    assert (muon.optimizer, rest.optimizer, muon.lr, rest.lr, muon.weight_decay) == ("muon", "adamw", 0.5, 0.5, 0.1)
    trained = {name for name, param in model.named_parameters() if param.requires_grad}
    assert set(muon.params) | set(rest.params) == trained and not set(muon.params) & set(rest.params)


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_one_optimizer_is_one_group(name):
    model = Net()
    (group,) = make_groups(model, [model.block], OptimizerConfig(name=name, beta1=0.8), lr=0.5)
    assert (group.optimizer, group.beta1) == (name, 0.8)


@pytest.mark.parametrize("shape", [(6, 4), (4, 9), (8, 4, 3, 3)])
def test_a_move_like_adamws_has_its_root_mean_square_in_every_shape(shape):
    torch.manual_seed(0)
    param = nn.Parameter(torch.randn(shape))
    start = param.detach().clone()
    layout = Replicated(ALONE, [param])
    group = ParamGroup(params={"w": param}, optimizer="muon", lr=0.1, is_like_adamw=True)
    (muon,) = make_optimizers([group], layout)
    param.grad.copy_(torch.randn(shape))
    muon.step(0.1, 0)
    moved = (param.detach() - start) / 0.1
    rows, columns = shape[0], start.numel() // shape[0]
    assert float(moved.square().mean().sqrt()) == pytest.approx(0.2, rel=0.25)
    # Five rounds bring every direction to a length of about one.
    flat = moved.flatten(1) / (0.2 * max(rows, columns) ** 0.5)
    sizes = torch.linalg.svdvals(flat)
    assert float(sizes.min()) > 0.5 and float(sizes.max()) < 1.3


def test_a_recipe_without_the_wanted_optimizer_is_refused(tmp_path, monkeypatch):
    from headway.engine import rank

    plain = rank.load_task

    def load_task(stored):
        config, task = plain(stored)
        task.param_groups = lambda model: [ParamGroup(params=dict(model.named_parameters()), optimizer="adamw", lr=1.0)]
        return config, task

    monkeypatch.setattr(rank, "load_task", load_task)
    for name in ("muon", "adam"):
        with pytest.raises(ConfigError) as refused:
            make_run(tmp_path / name, f"optimizer.name={name}")
        assert refused.value.code == "engine/other-optimizer" and "optimizer.name=adamw" in refused.value.hint()
    assert make_run(tmp_path / "adamw", "optimizer.name=adamw")
