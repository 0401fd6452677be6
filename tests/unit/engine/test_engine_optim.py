"""The optimizers against torch's own, and Muon against a plain reading of its definition."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from fakes.ranks import run_ranks
from headway.engine.optim import make_optimizers, orthogonalized
from headway.engine.parallel import Ranks, Replicated
from headway.task import ParamGroup

ALONE = Ranks(0, 1, 0, torch.device("cpu"))


def small_model(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 3))


@pytest.mark.parametrize(("name", "reference"), [("adamw", torch.optim.AdamW), ("adam", torch.optim.Adam)])
def test_adam_moves_weights_as_torch_does(name, reference):
    ours, theirs = small_model(), small_model()
    layout = Replicated(ALONE, ours.parameters())
    group = ParamGroup(params=dict(ours.named_parameters()), optimizer=name, lr=0.1, weight_decay=0.3, beta2=0.95)
    (optimizer,) = make_optimizers([group], layout)
    torch_optimizer = reference(theirs.parameters(), lr=0.1, weight_decay=0.3, betas=(0.9, 0.95))
    for step in range(5):
        x = torch.randn(4, 6)
        layout.zero_grad()
        torch_optimizer.zero_grad()
        ours(x).square().sum().backward()
        theirs(x).square().sum().backward()
        optimizer.step(0.1, step)
        torch_optimizer.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("momentum", "nesterov"), [(0.0, False), (0.9, False), (0.9, True)])
def test_sgd_moves_weights_as_torch_does(momentum, nesterov):
    ours, theirs = small_model(), small_model()
    layout = Replicated(ALONE, ours.parameters())
    params = dict(ours.named_parameters())
    group = ParamGroup(params=params, optimizer="sgd", lr=0.1, weight_decay=0.3, momentum=momentum, nesterov=nesterov)
    (optimizer,) = make_optimizers([group], layout)
    reference = torch.optim.SGD(theirs.parameters(), lr=0.1, weight_decay=0.3, momentum=momentum, nesterov=nesterov)
    for step in range(5):
        x = torch.randn(4, 6)
        layout.zero_grad()
        reference.zero_grad()
        ours(x).square().sum().backward()
        theirs(x).square().sum().backward()
        optimizer.step(0.1, step)
        reference.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine, other)
    assert len(optimizer.state()) == (len(params) if momentum else 0)


def test_orthogonalized_matrices_have_singular_values_near_one():
    for shape in ((3, 8, 8), (2, 16, 4), (1, 4, 16)):
        values = torch.linalg.svdvals(orthogonalized(torch.randn(shape)))
        assert values.min() > 0.4
        assert values.max() < 1.4


def plain_muon(weight, buffer, grad, lr, momentum):
    """Muon as its definition reads, one matrix at a time."""
    buffer.lerp_(grad, 1 - momentum)
    update = orthogonalized(grad.lerp(buffer, momentum)[None])[0]
    weight.sub_(lr * max(1, weight.shape[0] / weight.shape[1]) ** 0.5 * update)


def test_muon_follows_its_definition_with_the_momentum_ramp():
    weights = {
        "a": nn.Parameter(torch.randn(8, 4)),
        "b": nn.Parameter(torch.randn(8, 4)),
        "c": nn.Parameter(torch.randn(4, 8)),
    }
    wanted = {name: weight.detach().clone() for name, weight in weights.items()}
    buffers = {name: torch.zeros_like(weight) for name, weight in wanted.items()}
    layout = Replicated(ALONE, weights.values())
    group = ParamGroup(params=weights, optimizer="muon", lr=0.02, momentum_start=0.85, momentum_ramp_steps=2)
    (optimizer,) = make_optimizers([group], layout)
    for step, momentum in enumerate([0.85, 0.9, 0.95, 0.95]):
        for name, weight in weights.items():
            weight.grad.copy_(torch.randn(weight.shape))
            plain_muon(wanted[name], buffers[name], weight.grad, 0.02, momentum)
        optimizer.step(0.02, step)
    for name, weight in weights.items():
        torch.testing.assert_close(weight.detach(), wanted[name], rtol=1e-4, atol=1e-5)


def muon_on_ranks(ranks):
    """Five matrices of one shape on uneven ranks; returns weights and which momenta this rank holds."""
    torch.manual_seed(0)
    weights = {f"w{i}": nn.Parameter(torch.randn(6, 4)) for i in range(5)}
    layout = Replicated(ranks, weights.values())
    (optimizer,) = make_optimizers([ParamGroup(params=weights, optimizer="muon", lr=0.1)], layout)
    for step in range(3):
        for weight in weights.values():
            weight.grad.copy_(torch.randn(weight.shape))
        optimizer.step(0.1, step)
    return {name: weight.tolist() for name, weight in weights.items()}, sorted(optimizer.state())


def test_muon_shares_out_its_work_and_every_rank_ends_equal():
    ((alone, _),) = run_ranks(muon_on_ranks, 1)
    answers = run_ranks(muon_on_ranks, 3)
    owned = [name for _, names in answers for name in names]
    assert sorted(owned) == [f"w{i}/momentum" for i in range(5)]
    for weights, _ in answers:
        assert weights == answers[0][0]
        for name, weight in weights.items():
            torch.testing.assert_close(torch.tensor(weight), torch.tensor(alone[name]), rtol=1e-5, atol=1e-6)


def test_state_names_every_tensor_a_resumed_run_needs():
    model = small_model()
    layout = Replicated(ALONE, model.parameters())
    params = dict(model.named_parameters())
    (optimizer,) = make_optimizers([ParamGroup(params=params, optimizer="adamw", lr=0.1)], layout)
    assert {name.rpartition("/")[2] for name in optimizer.state()} == {"exp_avg", "exp_avg_sq"}
    assert len(optimizer.state()) == 2 * len(params)
    assert copy.deepcopy(sorted(optimizer.state())) == sorted(
        f"{n}/{s}" for n in params for s in ("exp_avg", "exp_avg_sq")
    )
