"""AdamW, Adam, SGD and Muon over named parameters.

State is kept by parameter name, so that a checkpoint is a set of global tensors and any world size can load it.
These are not torch.optim classes: constructing one of those imports the compiler (1.3 s measured on two cores), and
their state is keyed by position. The update itself is torch's own fused kernel.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from headway.engine.parallel import Layout
from headway.task import ParamGroup

# Renamed in torch 2.13; the old name still works there but warns.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor

_GATHER_BYTES = 64 << 20
"""Most bytes of updated matrices one all-gather carries."""
_ADAMW_RMS = 0.2
"""Root mean square of an AdamW update at a rate of one, as it is usually found."""


class Optimizer(ABC):
    """Updates one parameter group; `state` names every tensor a resumed run needs."""

    def __init__(self, group: ParamGroup, layout: Layout) -> None:
        self.group, self.layout = group, layout
        self.names = list(group.params)
        self.params = list(group.params.values())

    @abstractmethod
    def step(self, lr: float, steps_done: int) -> None:
        """Move the parameters by their gradients."""

    @abstractmethod
    def state(self) -> dict[str, tuple[Tensor, nn.Parameter]]:
        """Return this rank's state tensors, `<parameter>/<slot>`, each with the parameter whose layout it shares."""


class Adam(Optimizer):
    """Adam and AdamW, by torch's fused kernel."""

    def __init__(self, group: ParamGroup, layout: Layout) -> None:
        super().__init__(group, layout)
        self._update = adamw if group.optimizer == "adamw" else adam
        self._values = [layout.local(p.detach()) for p in self.params]
        self._exp_avg = [torch.zeros_like(p) for p in self._values]
        self._exp_avg_sq = [torch.zeros_like(p) for p in self._values]
        self._steps = [torch.zeros((), device=p.device) for p in self._values]

    def step(self, lr: float, steps_done: int) -> None:
        """Move the parameters by their gradients."""
        group = self.group
        self._update(
            self._values,
            [self.layout.local(p.grad) for p in self.params if p.grad is not None],
            self._exp_avg,
            self._exp_avg_sq,
            [],
            self._steps,
            fused=True,
            amsgrad=False,
            maximize=False,
            lr=lr,
            beta1=group.beta1,
            beta2=group.beta2,
            eps=group.eps,
            weight_decay=group.weight_decay,
        )

    def state(self) -> dict[str, tuple[Tensor, nn.Parameter]]:
        """Return both moments of every parameter."""
        out = {}
        for name, param, first, second in zip(self.names, self.params, self._exp_avg, self._exp_avg_sq, strict=True):
            out[f"{name}/exp_avg"] = (first, param)
            out[f"{name}/exp_avg_sq"] = (second, param)
        return out

    def set_steps(self, steps: int) -> None:
        """Set how many updates the moments have seen (for the bias correction)."""
        for counter in self._steps:
            counter.fill_(float(steps))


class Sgd(Optimizer):
    """Gradient descent with momentum, by torch's own function."""

    def __init__(self, group: ParamGroup, layout: Layout) -> None:
        super().__init__(group, layout)
        self._values = [layout.local(p.detach()) for p in self.params]
        # Zeros rather than torch's none before the first step: the same numbers, and a checkpoint always has them.
        self._momentum = [torch.zeros_like(p) for p in self._values] if group.momentum else []

    def step(self, lr: float, steps_done: int) -> None:
        """Move the parameters by their gradients."""
        group = self.group
        sgd(
            self._values,
            [self.layout.local(p.grad) for p in self.params if p.grad is not None],
            [*self._momentum] or [None] * len(self._values),
            weight_decay=group.weight_decay,
            momentum=group.momentum,
            lr=lr,
            dampening=0.0,
            nesterov=group.nesterov and group.momentum > 0,
            maximize=False,
        )

    def state(self) -> dict[str, tuple[Tensor, nn.Parameter]]:
        """Return the momentum of every parameter, or nothing without momentum."""
        if not self._momentum:
            return {}
        every = zip(self.names, self._momentum, self.params, strict=True)
        return {f"{name}/momentum_buffer": (buffer, param) for name, buffer, param in every}


def orthogonalized(updates_KRC: Tensor, iterations: int = 5) -> Tensor:
    """Return the nearest semi-orthogonal matrices, by Newton-Schulz; K matrices of R rows and C columns at once."""
    a, b, c = 3.4445, -4.7750, 2.0315
    # bf16 is enough for this iteration and fast on GPUs; CPUs are slower in it than in fp32.
    x = updates_KRC.bfloat16() if updates_KRC.is_cuda else updates_KRC.float()
    tall = x.size(-2) > x.size(-1)
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(iterations):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


Arrival = Callable[[], list[Tensor]]
"""Waits for the results of a chunk and returns them in its order."""


class Muon(Optimizer):
    """Momentum, orthogonalised. Matrices of one shape are dealt out over the ranks, each of which does the work of its
    own ones in one batched product; the results are exchanged while the next ones are computed.

    Replicas keep the momentum of their own matrices. Where parameters are sharded already, every rank keeps its shard
    of every momentum; the shards of a matrix are sent to the rank it is dealt to, and the shards of the result back.
    """

    def __init__(self, group: ParamGroup, layout: Layout) -> None:
        super().__init__(group, layout)
        self._rank, self._world = layout.rank, layout.world_size
        self._chunks = list(_chunks_by_shape(self.params, self._world))
        mine = range(len(self.params)) if layout.is_sharded else [i for chunk in self._chunks for i in self._own(chunk)]
        self._momentum = {index: torch.zeros_like(layout.local(self.params[index].detach())) for index in mine}

    def step(self, lr: float, steps_done: int) -> None:
        """Move the parameters by their gradients."""
        group = self.group
        ramp = min(1.0, steps_done / group.momentum_ramp_steps) if group.momentum_ramp_steps else 1.0
        momentum = (1 - ramp) * group.momentum_start + ramp * group.momentum
        under_way: tuple[list[int], Arrival] | None = None
        with torch.no_grad():
            for chunk in self._chunks:
                exchange = self._exchange_shards if self.layout.is_sharded else self._exchange
                arrival = exchange(chunk, momentum)
                if self._world == 1:  # nothing is on its way, so nothing is kept
                    self._apply(chunk, arrival, lr)
                    continue
                if under_way is not None:
                    self._apply(*under_way, lr)
                under_way = chunk, arrival
            if under_way is not None:
                self._apply(*under_way, lr)

    def _own(self, chunk: Sequence[int]) -> Sequence[int]:
        return chunk[self._rank :: self._world]

    def _exchange(self, chunk: list[int], momentum: float) -> Arrival:
        """Orthogonalise this rank's matrices of a chunk; return what every rank's come to, whole."""
        own = self._own(chunk)
        found = self._orthogonal(torch.stack([self._nesterov(index, momentum) for index in own])) if own else None
        if self._world == 1:
            assert found is not None
            return lambda: list(found)
        first = self.params[chunk[0]]
        rows = -(-len(chunk) // self._world)
        # As it comes out of the iteration, which on GPUs is 16 bits wide: half the bytes, and nothing is lost.
        sent = torch.zeros(rows, *first.shape, dtype=_iteration_type(first), device=first.device)
        if found is not None:
            sent[: len(found)] = found
        everyone = torch.empty(self._world * rows, *first.shape, dtype=sent.dtype, device=sent.device)
        work = _all_gather(everyone, sent, async_op=True)

        def arrive() -> list[Tensor]:
            work.wait()
            return [everyone[(place % self._world) * rows + place // self._world] for place in range(len(chunk))]

        return arrive

    def _exchange_shards(self, chunk: list[int], momentum: float) -> Arrival:
        """Send each rank the shards of its matrices, orthogonalise, and return this rank's shard of every result."""
        shape, device = self.params[chunk[0]].shape, self.layout.device
        each, rows = -(-len(chunk) // self._world), -(-shape[0] // self._world)
        # Shards are cut by rows, in rank order, and only the last ones may be shorter: padded, they follow on.
        given = torch.zeros(self._world, each, rows, *shape[1:], device=device)
        sizes = []
        for place, index in enumerate(chunk):
            part = self._nesterov(index, momentum)
            sizes.append(len(part))
            given[place % self._world, place // self._world, : len(part)] = part
        taken = torch.empty_like(given)
        dist.all_to_all_single(taken, given)
        whole = taken.transpose(0, 1).reshape(each, self._world * rows, *shape[1:])
        own = len(self._own(chunk))
        result = torch.zeros(each, self._world * rows, *shape[1:], dtype=_iteration_type(whole), device=device)
        if own:
            result[:own, : shape[0]] = self._orthogonal(whole[:own, : shape[0]])
        back = result.view(each, self._world, rows, *shape[1:]).transpose(0, 1).contiguous()
        home = torch.empty_like(back)
        work = dist.all_to_all_single(home, back, async_op=True)

        def arrive() -> list[Tensor]:
            work.wait()
            return [home[place % self._world, place // self._world, :size] for place, size in enumerate(sizes)]

        return arrive

    def _orthogonal(self, updates: Tensor) -> Tensor:
        # A convolution kernel is a matrix of its output channels by all they look at.
        return orthogonalized(updates.flatten(2)).view(updates.shape)

    def _nesterov(self, index: int, momentum: float) -> Tensor:
        param, buffer = self.params[index], self._momentum[index]
        assert param.grad is not None
        grad = self.layout.local(param.grad).to(buffer.dtype)
        buffer.lerp_(grad, 1 - momentum)
        return grad.lerp(buffer, momentum)

    def _apply(self, chunk: Sequence[int], arrive: Arrival, lr: float) -> None:
        """Move the parameters of a chunk, or this rank's shards of them."""
        rows, columns = len(self.params[chunk[0]]), self.params[chunk[0]][0].numel()
        # Liu et al. 2025, Muon is Scalable for LLM Training: orthogonal moves with the RMS of AdamW's.
        reach = _ADAMW_RMS * max(rows, columns) ** 0.5 if self.group.is_like_adamw else max(1.0, rows / columns) ** 0.5
        for index, move in zip(chunk, arrive(), strict=True):
            mine = self.layout.local(self.params[index].detach())
            if self.group.weight_decay:
                mine.mul_(1 - lr * self.group.weight_decay)
            mine.add_((move.float() * (-lr * reach)).to(mine))

    def state(self) -> dict[str, tuple[Tensor, nn.Parameter]]:
        """Return the momentum of the matrices this rank owns."""
        return {f"{self.names[i]}/momentum": (buffer, self.params[i]) for i, buffer in self._momentum.items()}


def _iteration_type(like: Tensor) -> torch.dtype:
    """Return the type that `orthogonalized` answers in."""
    return torch.bfloat16 if like.is_cuda else torch.float32


def _chunks_by_shape(params: Sequence[nn.Parameter], world_size: int) -> Iterable[list[int]]:
    """Yield indexes of parameters of one shape, at most as many as one all-gather should carry."""
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for index, param in enumerate(params):
        by_shape.setdefault(tuple(param.shape), []).append(index)
    for shape, indexes in by_shape.items():
        each = 4 * math.prod(shape)
        limit = max(1, _GATHER_BYTES // (each * world_size)) * world_size
        for start in range(0, len(indexes), limit):
            yield indexes[start : start + limit]


def make_optimizers(groups: Sequence[ParamGroup], layout: Layout) -> list[Optimizer]:
    """Return one optimizer a group."""
    kinds: dict[str, type[Optimizer]] = {"muon": Muon, "sgd": Sgd}
    return [kinds.get(group.optimizer, Adam)(group, layout) for group in groups if group.params]
