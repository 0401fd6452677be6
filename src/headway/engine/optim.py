"""AdamW, Adam, SGD and Muon over named parameters.

State is kept by parameter name, so that a checkpoint is a set of global tensors and any world size can load it.
These are not torch.optim classes: constructing one of those imports the compiler (1.3 s measured on two cores), and
their state is keyed by position. The update itself is torch's own fused kernel.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

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


class Muon(Optimizer):
    """Momentum, orthogonalised. Matrices of one shape are dealt out over the ranks; each rank keeps the momentum and
    does the work of its own ones in one batched product, then the results are gathered. Where parameters are sharded
    already, every rank keeps its shard of the momentum and works on whole matrices one chunk at a time.
    """

    def __init__(self, group: ParamGroup, layout: Layout) -> None:
        super().__init__(group, layout)
        self._rank, self._world = (0, 1) if layout.is_sharded else (layout.rank, layout.world_size)
        self._chunks = list(_chunks_by_shape(self.params, self._world))
        mine = [index for chunk in self._chunks for index in chunk[self._rank :: self._world]]
        self._momentum = {index: torch.zeros_like(layout.local(self.params[index].detach())) for index in mine}

    def step(self, lr: float, steps_done: int) -> None:
        """Move the parameters by their gradients."""
        group = self.group
        ramp = min(1.0, steps_done / group.momentum_ramp_steps) if group.momentum_ramp_steps else 1.0
        momentum = (1 - ramp) * group.momentum_start + ramp * group.momentum
        with torch.no_grad():
            for chunk in self._chunks:
                moves = self._moves(chunk[self._rank :: self._world], lr, momentum)
                for index, move in zip(chunk, self._gathered(chunk, moves), strict=True):
                    self._apply(self.params[index], move, lr)

    def _moves(self, owned: Sequence[int], lr: float, momentum: float) -> Tensor | None:
        """Return the moves of the matrices this rank owns, or None when the chunk has none for it."""
        if not owned:
            return None
        # A convolution kernel is a matrix of its output channels by all they look at.
        updates = torch.stack([self._nesterov(index, momentum).flatten(1) for index in owned])
        rows, columns = updates.shape[1:]
        # Liu et al. 2025, Muon is Scalable for LLM Training: orthogonal moves with the RMS of AdamW's.
        reach = _ADAMW_RMS * max(rows, columns) ** 0.5 if self.group.is_like_adamw else max(1.0, rows / columns) ** 0.5
        moves = orthogonalized(updates).float() * (-lr * reach)
        return moves.view(len(owned), *self.params[owned[0]].shape)

    def _gathered(self, chunk: Sequence[int], moves: Tensor | None) -> list[Tensor]:
        """Return the move of every matrix of a chunk, on every rank."""
        if self._world == 1:
            assert moves is not None
            return list(moves)
        first = self.params[chunk[0]]
        rows = -(-len(chunk) // self._world)
        sent = torch.zeros(rows, *first.shape, dtype=torch.float32, device=first.device)
        if moves is not None:
            sent[: len(moves)] = moves
        everyone = torch.empty(self._world * rows, *first.shape, dtype=sent.dtype, device=sent.device)
        _all_gather(everyone, sent)
        return [everyone[(place % self._world) * rows + place // self._world] for place in range(len(chunk))]

    def _nesterov(self, index: int, momentum: float) -> Tensor:
        param, buffer = self.params[index], self._momentum[index]
        assert param.grad is not None
        grad = self.layout.local(param.grad).to(buffer.dtype)
        buffer.lerp_(grad, 1 - momentum)
        return self.layout.whole(grad.lerp(buffer, momentum), like=param)

    def _apply(self, param: nn.Parameter, move: Tensor, lr: float) -> None:
        mine = self.layout.local(param.detach())
        if self.group.weight_decay:
            mine.mul_(1 - lr * self.group.weight_decay)
        mine.add_(self.layout.shard(move.to(mine.dtype), like=param))

    def state(self) -> dict[str, tuple[Tensor, nn.Parameter]]:
        """Return the momentum of the matrices this rank owns."""
        return {f"{self.names[i]}/momentum": (buffer, self.params[i]) for i, buffer in self._momentum.items()}


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
