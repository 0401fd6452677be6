"""When a loss or gradient is not a finite number: find whose sample it was, then stop, skip or roll back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from headway.engine import policy
from headway.engine.evaluate import own_draws, set_train_mode
from headway.engine.loader import Loaded
from headway.engine.rank_state import Run
from headway.engine.snapshot import resume
from headway.errors import TrainError
from headway.task import to_device
from headway.task.order import Int64

_NAMED = 8
"""Most sample ids one rank names."""


def answer(run: Run, taken: Sequence[Loaded], start: int, what: str) -> None:
    """Record the event, then do what `guard.policy` says; `taken` is this rank's share of the step."""
    rank, samples = _culprits(run, taken)
    found = policy.answer_guard(run.config.guard, run.progress, what=what, rank=rank, samples=samples)
    run.progress.guard_events += 1
    if run.ranks.rank == 0:
        run.reporter.event(found.event)
    if found.error is not None:
        raise found.error
    if found.is_roll_back:
        _roll_back(run, start, found.facts)
    else:
        run.move_on(taken, start)


def _roll_back(run: Run, start: int, facts: dict[str, object]) -> None:
    """Go back to the newest checkpoint; this step's samples are left out from then on."""
    run.saver.wait()
    before, step, end = run.progress, run.progress.step, run.end_of_step(start)
    run.progress.step = -1
    resume(run)
    if run.progress.step < 0:
        run.progress.step = step
        raise TrainError("engine/nothing-to-roll-back", **facts)
    run.ledger.settle()
    run.progress = policy.after_roll_back(run.progress, before, (start, end))
    if run.ranks.rank == 0:
        run.reporter.event({"kind": "rolled_back", "step": run.progress.step})
    if run.measured_step != run.progress.step:
        run.measured_step = None  # a later step of this number has other weights
    run.open_data()


def _culprits(run: Run, taken: Sequence[Loaded]) -> tuple[int, list[int]]:
    """Return the first rank with samples whose own loss or gradient is not finite, and those samples.

    The search moves no generator and no running statistic, and leaves no gradient behind.
    """
    run.put_buffers_back()
    with own_draws(run.ranks.device):
        find = _search_sharded if run.layout.is_sharded else _search
        found = _gather(run, find(run, taken)[:_NAMED])
    run.layout.zero_grad()
    run.put_buffers_back()
    for rank, ids in enumerate(found):
        named = [value for value in ids.tolist() if value >= 0]
        if named:
            return rank, named
    return 0, []


def _search(run: Run, taken: Sequence[Loaded]) -> list[int]:
    """Return this rank's bad samples; where every rank holds all weights, each can look on its own."""
    return [one for part in taken if not _is_finite(run, part) for one in _bad_samples(run, part)]


def _search_sharded(run: Run, taken: Sequence[Loaded]) -> list[int]:
    """Return this rank's bad micro-batches. Sharded layers need every rank in every pass, and gradients come summed.

    So a rank knows its own loss; where only a gradient is at fault, all ranks take each one's micro-batch in turn.
    """
    bad: list[int] = []
    first: int | None = None
    # A rank that takes fewer micro-batches than others looks at its last one again.
    taken = [*taken, *[taken[-1]] * (run.plan.accumulation - len(taken))]
    for turn, part in enumerate(taken):
        loss, norm = run_pass(run, part)
        bad += [] if math.isfinite(loss) else part.ids.tolist()
        if first is None and not math.isfinite(norm):
            first = turn
    bad = list(dict.fromkeys(bad))
    if first is None or any(bool((ids >= 0).any()) for ids in _gather(run, bad[:_NAMED])):
        return bad
    mine = taken[first]
    for rank, rows in enumerate(zip(_gather(run, mine.ids), _gather(run, mine.epochs), strict=True)):
        ids, epochs = (row[: len(mine.ids)].numpy() for row in rows)
        _, norm = run_pass(run, Loaded(run.data.batch(ids, epochs), ids, epochs))
        if rank == run.ranks.rank and not math.isfinite(norm):
            bad = mine.ids.tolist()
    return bad


def _gather(run: Run, mine: Sequence[int] | Int64) -> list[Tensor]:
    """Return every rank's ids, filled up with -1 to the same length."""
    length = max(_NAMED, run.plan.micro_batch)
    row = torch.full((length,), -1, dtype=torch.int64, device=run.ranks.device)
    row[: len(mine)] = torch.as_tensor(np.asarray(mine, np.int64))
    rows = [row]
    if run.ranks.world_size > 1:
        rows = [torch.empty_like(row) for _ in range(run.ranks.world_size)]
        dist.all_gather(rows, row)
    return [one.cpu() for one in rows]


def _bad_samples(run: Run, part: Loaded) -> list[int]:
    """Try a micro-batch sample by sample; none found, all of them are named."""
    single = [
        Loaded(run.data.batch(np.array([i]), np.array([e])), np.array([i]), np.array([e]))
        for i, e in zip(part.ids, part.epochs, strict=True)
    ]
    run.put_buffers_back()
    try:
        with one_by_one(run):
            bad = [int(one.ids[0]) for one in single if not _is_finite(run, one)]
    except Exception:  # border: a model that takes no single sample must not end a run that could continue
        bad = []
    return bad or part.ids.tolist()


@contextmanager
def one_by_one(run: Run) -> Iterator[None]:
    """Put the model into evaluation mode: statistics over a batch of one are none, and batch norm refuses them."""
    run.model.eval()
    for module in run.model.modules():
        if isinstance(module, nn.RNNBase):
            module.train()  # cuDNN has no backward through an RNN in evaluation mode
    try:
        yield
    finally:
        set_train_mode(run)


def _is_finite(run: Run, part: Loaded) -> bool:
    return all(map(math.isfinite, run_pass(run, part)))


def run_pass(run: Run, part: Loaded) -> tuple[float, float]:
    """Run one forward and backward; return the loss and the sum of every gradient's size.

    Replicas look at their own gradients. Shards are summed over the ranks: FSDP2 keeps what it has not summed yet out
    of `zero_grad`'s reach, and NaN in it would be in every later step.
    """
    run.layout.zero_grad()
    run.layout.begin_micro(is_last=run.layout.is_sharded)
    with run.precision.context():
        loss = run.task.loss(run.model, to_device(part.batch, run.ranks.device))
    loss.total.backward()
    grads = [run.layout.local(p.grad) for p in run.model.parameters() if p.grad is not None]
    size = sum((grad.double().abs().sum() for grad in grads), torch.zeros((), device=run.ranks.device).double())
    if run.layout.is_sharded:
        dist.all_reduce(size)
    return float(loss.total.detach()), float(size)
