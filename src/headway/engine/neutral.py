"""Whether a smaller micro-batch is the same training: one step both ways, gradients compared.

After a run is out of memory its batch is cut into smaller pieces (launch/shrink.py). For a loss that is a sum over
samples that changes nothing but rounding. It does change a model that normalises over its batch, and a loss that is a
mean of means; both would train on silently as something else.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from headway.engine.evaluate import own_draws, set_train_mode
from headway.engine.rank_state import Run
from headway.errors import TrainError
from headway.task import to_device
from headway.task.order import Int64, Order, micro_batches

_LIMIT = {"fp32": 1e-3, "bf16": 3e-2, "fp16": 3e-2}
"""Largest difference that is rounding: sums of a few thousand terms in another order, measured at tiny size 1e-6."""
_NOISE = 3.0
"""A loss that draws random numbers differs from itself; more than this many times that is not noise."""
_TRIES = 4
"""Micro-batches that are looked at for one whose gradients are numbers."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Gradients of the same samples at two micro-batches, relative to the largest gradient."""

    difference: float
    noise: float
    """The same with other random numbers at one micro-batch; 0: the loss draws none."""
    limit: float

    @property
    def is_neutral(self) -> bool:
        """The pieces do not matter."""
        return self.difference <= max(self.limit, _NOISE * self.noise)


def prove(run: Run, *, before: int, is_agreed: bool) -> None:
    """Compare one step both ways and report it; refuse to train on where the training would be another one.

    Args:
        before: the micro-batch that did not fit.
        is_agreed: the user takes what is not neutral, too.
    """
    size = run.plan.micro_batch
    layers = sorted({type(one).__name__ for one in run.model.modules() if isinstance(one, _BatchNorm)})
    found = _compare(run, size) if size > 1 else None
    is_unknown = found is None and size > 1
    facts: dict[str, object] = {"before": before, "after": size, "other": -(-size // 2)}
    if found is not None:
        facts |= {"difference": f"{found.difference:.1e}", "limit": f"{found.limit:.0e}"}
    if layers:
        code, facts = "engine/batch-norm-not-neutral", {**facts, "layers": ", ".join(layers)}
    elif is_unknown:
        code, facts = "engine/batch-not-finite", {**facts, "num": _TRIES}
    elif found is None:
        code = "engine/batch-not-compared"
    elif not found.is_neutral:
        code = "engine/batch-not-neutral"
    elif found.noise > found.limit:
        code, facts = "engine/batch-neutral-noisy", {**facts, "noise": f"{found.noise:.1e}"}
    else:
        code = "engine/batch-neutral"
    if code in ("engine/batch-norm-not-neutral", "engine/batch-not-neutral") and not is_agreed:
        raise TrainError(code, **facts)
    if run.ranks.rank == 0:
        run.reporter.event({"kind": "warning", "code": code, "facts": facts})


_BatchNorm = nn.modules.batchnorm._BatchNorm


def _compare(run: Run, size: int) -> Comparison | None:
    """Return how much the gradients of one micro-batch differ from those of its two halves.

    None: those of the first micro-batches are not numbers, which is the guard's to answer and says nothing about size.
    """
    order = Order(len(run.data), run.config.seed)
    half = -(-size // 2)
    run.keep_buffers()
    with _untouched(run):
        for ids, epochs in islice(micro_batches(order, run.share, run.progress.position, run.progress.skips), _TRIES):
            whole, halves = [(ids, epochs)], [(ids[:half], epochs[:half]), (ids[half:], epochs[half:])]
            one, scale = _finite_gradient(run, whole)
            if one is not None:
                difference = _difference(run, one, _gradient(run, halves, seed=1, scale=scale))
                noise = _difference(run, one, _gradient(run, whole, seed=2, scale=scale))
                return Comparison(difference, noise, _LIMIT[run.plan.precision])
    return None


def _finite_gradient(run: Run, pieces: Sequence[tuple[Int64, Int64]]) -> tuple[list[Tensor] | None, float]:
    """Return the gradient and the loss scale that it is finite at: fp16 begins with one that may be too large."""
    scale = run.precision.scale
    while True:
        found = _gradient(run, pieces, seed=1, scale=scale)
        bad = torch.tensor([float(not all(bool(one.isfinite().all()) for one in found))], device=run.ranks.device)
        if run.ranks.world_size > 1:
            dist.all_reduce(bad, op=dist.ReduceOp.MAX)
        if not bad.item():
            return found, scale
        if scale <= 1:
            return None, scale
        scale /= 4


@contextmanager
def _untouched(run: Run) -> Iterator[None]:
    """Leave no trace: no gradient, no running statistic, no number drawn. Dropout is off, for it draws by shape."""
    states = random.getstate(), np.random.get_state()
    set_train_mode(run)
    for module in run.model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.eval()
    try:
        with own_draws(run.ranks.device):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        run.layout.zero_grad()
        run.put_buffers_back()
        set_train_mode(run)


def _gradient(run: Run, pieces: Sequence[tuple[Int64, Int64]], *, seed: int, scale: float) -> list[Tensor]:
    """Return the mean gradient over all ranks' pieces, each rank its part, on the host: the device has no room."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    run.put_buffers_back()
    run.layout.zero_grad()
    count = torch.zeros((), dtype=torch.float64, device=run.ranks.device)
    for turn, key in enumerate(pieces):
        run.layout.begin_micro(is_last=turn + 1 == len(pieces))
        with run.precision.context():
            loss = run.task.loss(run.model, to_device(run.data.batch(*key), run.ranks.device))
        (loss.total * scale).backward()
        count += torch.as_tensor(loss.count, device=count.device)
    run.layout.finish_backward()
    if run.ranks.world_size > 1:
        dist.all_reduce(count)
    factor = 1 / (scale * float(count))
    grads = [run.layout.local(p.grad) for p in run.model.parameters() if p.grad is not None]
    return [(grad.detach().float() * factor).cpu() for grad in grads]


def _difference(run: Run, one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    """Return the largest difference of all ranks, relative to the largest gradient."""
    gap = max((float((a - b).abs().max()) for a, b in zip(one, other, strict=True) if a.numel()), default=0.0)
    most = max((float(a.abs().max()) for a in one if a.numel()), default=0.0)
    both = torch.tensor([gap, most], device=run.ranks.device)
    if run.ranks.world_size > 1:
        dist.all_reduce(both, op=dist.ReduceOp.MAX)
    gap, most = both.tolist()
    return gap / most if most else 0.0
