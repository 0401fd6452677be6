"""Gradients summed over ranks: replicas in flat buffers, shards by FSDP2."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.distributed.tensor import DTensor

from fakes.ranks import run_ranks
from headway.engine.optim import make_optimizers
from headway.engine.parallel import Ranks, Replicated, share_weights
from headway.task import ParamGroup


class Net(nn.Module):
    """Two blocks and a head, with one parameter that no loss reaches."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.blocks = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.head = nn.Linear(8, 3)
        self.unused = nn.Parameter(torch.ones(4))

    def forward(self, x):
        for block in self.blocks:
            x = torch.tanh(block(x))
        return self.head(x)


def whole_of(param: torch.nn.Parameter) -> torch.Tensor:
    value = param.detach()
    return value.full_tensor() if isinstance(value, DTensor) else value


def batches(num_micro: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(11)
    return list(torch.randn(24, 8, generator=generator).chunk(num_micro))


def make_layout(ranks, model, strategy):
    if strategy == "fsdp":
        from headway.engine.fsdp import Sharded

        return Sharded(ranks, model, list(model.blocks), "fp32")
    return Replicated(ranks, model.parameters(), bucket_bytes=200)


def train_some(ranks, strategy, accumulation, optimizer_name):
    """Three steps over the same samples whatever the layout; returns norms and whole weights."""
    model = Net()
    layout = make_layout(ranks, model, strategy)
    params = dict(model.named_parameters())
    matrices = {n: p for n, p in params.items() if p.ndim == 2}
    rest = {n: p for n, p in params.items() if p.ndim != 2}
    groups = [
        ParamGroup(params=matrices, optimizer=optimizer_name, lr=0.05),
        ParamGroup(params=rest, optimizer="adamw", lr=0.05),
    ]
    optimizers = make_optimizers(groups, layout)
    norms = []
    for step in range(3):
        layout.zero_grad()
        parts = batches(ranks.world_size * accumulation)
        for turn in range(accumulation):
            layout.begin_micro(is_last=turn + 1 == accumulation)
            x = parts[turn * ranks.world_size + ranks.rank]
            model(x).square().sum().div(24).backward()
        layout.finish_backward()
        norms.append(float(layout.grad_norm()))
        layout.scale_grads(min(1.0, 1.0 / norms[-1]))
        for optimizer in optimizers:
            optimizer.step(0.05, step)
    whole = {name: whole_of(p).flatten().tolist() for name, p in params.items()}
    return norms, whole


def assert_close(got, wanted):
    norms, weights = got
    torch.testing.assert_close(torch.tensor(norms), torch.tensor(wanted[0]), rtol=1e-5, atol=1e-6)
    for name, values in weights.items():
        torch.testing.assert_close(torch.tensor(values), torch.tensor(wanted[1][name]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize(
    ("strategy", "world", "accumulation"), [("ddp", 2, 1), ("ddp", 2, 3), ("fsdp", 2, 1), ("fsdp", 2, 3)]
)
def test_every_layout_trains_like_one_process(strategy, world, accumulation, optimizer):
    (alone,) = run_ranks(train_some, 1, "ddp", 1, optimizer)
    answers = run_ranks(train_some, world, strategy, accumulation, optimizer)
    assert answers[0] == answers[1]
    assert_close(answers[0], alone)


def test_sgd_trains_alike_on_shards():
    (alone,) = run_ranks(train_some, 1, "ddp", 1, "sgd")
    answers = run_ranks(train_some, 2, "fsdp", 3, "sgd")
    assert answers[0] == answers[1]
    assert_close(answers[0], alone)


def count_messages(ranks):
    """Return how many all-reduces three micro-batches cause."""
    import torch.distributed as dist

    sent = []
    real = dist.all_reduce

    def counting(tensor, **more):
        sent.append(tensor.numel())
        return real(tensor, **more)

    dist.all_reduce = counting
    model = Net()
    layout = Replicated(ranks, model.parameters())
    for turn in range(3):
        layout.begin_micro(is_last=turn == 2)
        model(torch.ones(2, 8)).sum().backward()
    layout.finish_backward()
    return len(sent)


def test_accumulation_talks_to_other_ranks_once():
    assert run_ranks(count_messages, 2) == [1, 1]


def test_gradients_are_views_of_few_buffers():
    model = Net()
    layout = Replicated(Ranks(0, 1, 0, torch.device("cpu")), model.parameters())
    model(torch.ones(2, 8)).sum().backward()
    before = float(layout.grad_norm())
    layout.scale_grads(2.0)
    assert float(layout.grad_norm()) == pytest.approx(2 * before)
    grads = [p.grad.norm() for p in model.parameters()]
    assert float(torch.stack(grads).norm()) == pytest.approx(2 * before, rel=1e-6)
    layout.zero_grad()
    assert float(layout.grad_norm()) == 0


def train_above_frozen(ranks, strategy):
    """One step above a frozen block; returns the norm and all whole weights."""
    model = Net()
    model.blocks[0].requires_grad_(False)
    layout = make_layout(ranks, model, strategy)
    params = {name: param for name, param in model.named_parameters() if param.requires_grad}
    (optimizer,) = make_optimizers([ParamGroup(params=params, optimizer="adamw", lr=0.05)], layout)
    layout.zero_grad()
    layout.begin_micro(is_last=True)
    model(batches(ranks.world_size)[ranks.rank]).square().sum().div(24).backward()
    layout.finish_backward()
    norm = float(layout.grad_norm())
    optimizer.step(0.05, 0)
    whole = {n: whole_of(p).flatten().tolist() for n, p in params.items()}
    return [norm], whole, model.blocks[0].weight.flatten().tolist()


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_frozen_part_stays_whole_and_as_it_was(strategy):
    (alone,) = run_ranks(train_above_frozen, 1, "ddp")
    answers = run_ranks(train_above_frozen, 2, strategy)
    assert answers[0] == answers[1]
    assert_close(answers[0][:2], alone[:2])
    assert answers[0][2] == Net().blocks[0].weight.flatten().tolist()


class Odd(nn.Module):
    """Parameters in other memory orders than by index: channels last, transposed, with gaps, one size of one."""

    def __init__(self, is_odd: bool) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        conv, turned = torch.randn(4, 3, 2, 2, generator=generator), torch.randn(6, 4, generator=generator)
        gaps, thin = torch.randn(6, 12, generator=generator)[:, ::2], torch.randn(6, 1, 2, generator=generator)
        if is_odd:
            conv = conv.contiguous(memory_format=torch.channels_last)
            turned, thin = turned.t().contiguous().t(), thin.permute(2, 1, 0).contiguous().permute(2, 1, 0)
        else:
            gaps = gaps.contiguous()
        self.conv, self.turned, self.gaps, self.thin = (nn.Parameter(part) for part in (conv, turned, gaps, thin))
        self.blocks = nn.ModuleList()

    def forward(self, x):
        x = nn.functional.conv2d(x.view(-1, 3, 2, 2), self.conv).flatten(1)
        return torch.tanh(x @ self.turned.t()) @ self.gaps @ self.thin.flatten(1)


def move_odd(ranks, strategy, optimizer_name):
    """Three steps; returns norms and whole weights."""
    model = Odd(is_odd=True)
    layout = make_layout(ranks, model, strategy)
    (optimizer,) = make_optimizers(
        [ParamGroup(params=dict(model.named_parameters()), optimizer=optimizer_name, lr=0.1)], layout
    )
    x, norms = torch.randn(8, 12, generator=torch.Generator().manual_seed(1)), []
    for step in range(3):
        layout.zero_grad()
        layout.begin_micro(is_last=True)
        model(x.chunk(ranks.world_size)[ranks.rank]).square().sum().backward()
        layout.finish_backward()
        norms.append(float(layout.grad_norm()))
        optimizer.step(0.1, step)
    params = dict(model.named_parameters())
    return norms, {n: whole_of(p).flatten().tolist() for n, p in params.items()}


def share_odd(ranks):
    """Start from other weights on each rank; return whether rank 0's arrive, and every parameter keeps its order."""
    model = Odd(is_odd=True)
    model.register_buffer("same", torch.ones(1).expand(5))
    strides = [p.stride() for p in model.parameters()]
    with torch.no_grad():
        for param in model.parameters():
            param.add_(ranks.rank)
    share_weights(model, ranks)
    equal = all(torch.equal(a, b) for a, b in zip(model.parameters(), Odd(is_odd=False).parameters(), strict=True))
    return equal and strides == [p.stride() for p in model.parameters()]


def move_all_ways(ranks):
    """Return what every layout and optimizer comes to, and whether the weights of rank 0 reach the others."""
    ways = [(strategy, name) for strategy in ("ddp", "fsdp") for name in ("adamw", "adam")]
    return {way: move_odd(ranks, *way) for way in ways}, share_odd(ranks)


def move_by_torch(name):
    """Return what torch's own optimizer makes of the same numbers in plain memory."""
    model = Odd(is_odd=False)
    kind = torch.optim.AdamW if name == "adamw" else torch.optim.Adam
    optimizer = kind(model.parameters(), lr=0.1, weight_decay=0.0)
    x, norms = torch.randn(8, 12, generator=torch.Generator().manual_seed(1)), []
    for _ in range(3):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        norms.append(float(torch.stack([p.grad.norm() for p in model.parameters()]).norm()))
        optimizer.step()
    return norms, {n: p.detach().flatten().tolist() for n, p in model.named_parameters()}


def test_parameters_in_any_memory_order_move_by_their_own_gradients():
    wanted = {name: move_by_torch(name) for name in ("adamw", "adam")}
    for name in wanted:
        assert_close(move_odd(Ranks(0, 1, 0, torch.device("cpu")), "ddp", name), wanted[name])
    for ways, is_shared in run_ranks(move_all_ways, 2):
        assert is_shared
        for (_, name), got in ways.items():
            assert_close(got, wanted[name])


def gradients_between(ranks, is_offloaded):
    """Return whether a rank holds its shards alone after the first of two micro-batches, and the norm after both."""
    from headway.engine.fsdp import Sharded

    model = Net()
    layout = Sharded(ranks, model, list(model.blocks), "fp32", is_offloaded=is_offloaded)
    reached = [param for name, param in model.named_parameters() if name != "unused"]
    held = []
    for is_last in (False, True):
        layout.begin_micro(is_last=is_last)
        model(batches(1)[0]).square().sum().backward()
        held.append([isinstance(p.grad, DTensor) and p.grad.to_local().numel() for p in reached])
    layout.finish_backward()
    return held == [[param.to_local().numel() for param in reached]] * 2, float(layout.grad_norm())


def test_gradients_stay_sharded_between_micro_batches_and_so_do_those_in_host_memory():
    """Issue 16.4: they were kept whole, which the planner did not count."""
    plain, offloaded = (run_ranks(gradients_between, 2, is_offloaded) for is_offloaded in (False, True))
    assert plain == offloaded and all(is_sharded for is_sharded, _ in plain)
