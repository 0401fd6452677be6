"""When a loss or gradient is not a finite number: find whose sample it was, then stop, skip or roll back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist

from headway.engine.loader import Loaded
from headway.engine.run import Run
from headway.engine.snapshot import resume
from headway.engine.task import to_device
from headway.errors import TrainError

_NAMED = 8
"""Most sample ids one rank names."""


def answer(run: Run, taken: Sequence[Loaded], start: int, what: str) -> None:
    """Record the event, then do what `guard.policy` says; `taken` is this rank's share of the step."""
    rank, samples = _culprits(run, taken)
    progress, policy = run.progress, run.config.guard.policy
    progress.guard_events += 1
    step = progress.step + 1
    names = ", ".join(map(str, samples)) or "n/a"
    if run.ranks.rank == 0:
        run.reporter.event(
            {"kind": "guard", "step": step, "rank": rank, "samples": samples, "policy": policy, "what": what}
        )
    facts = {"what": what, "rank": rank, "step": step, "samples": names}
    if policy == "stop":
        raise TrainError("engine/not-finite", **facts)
    if progress.guard_events > run.config.guard.limit:
        raise TrainError("engine/not-finite-limit", limit=run.config.guard.limit, **facts)
    if policy == "rollback":
        _roll_back(run, start, facts)
    else:
        run.move_on(taken, start)


def _roll_back(run: Run, start: int, facts: dict[str, object]) -> None:
    """Go back to the newest checkpoint; this step's samples are left out from then on."""
    events = run.progress.guard_events
    run.saver.wait()
    before = run.progress.step
    run.progress.step = -1
    resume(run)
    if run.progress.step < 0:
        run.progress.step = before
        raise TrainError("engine/nothing-to-roll-back", **facts)
    run.ledger.settle()
    run.progress.guard_events = events
    run.progress.skips.append((start, start + run.plan.batch_samples))
    run.open_data()


def _culprits(run: Run, taken: Sequence[Loaded]) -> tuple[int, list[int]]:
    """Return the first rank with samples whose own loss or gradient is not finite, and those samples."""
    bad = [int(i) for part in taken if not _is_finite(run, part) for i in _bad_samples(run, part)]
    mine = torch.full((_NAMED,), -1, dtype=torch.int64, device=run.ranks.device)
    mine[: len(bad[:_NAMED])] = torch.tensor(bad[:_NAMED], dtype=torch.int64)
    found = [mine]
    if run.ranks.world_size > 1:
        found = [torch.empty_like(mine) for _ in range(run.ranks.world_size)]
        dist.all_gather(found, mine)
    run.layout.zero_grad()
    for rank, ids in enumerate(found):
        named = [value for value in ids.tolist() if value >= 0]
        if named:
            return rank, named
    return 0, []


def _bad_samples(run: Run, part: Loaded) -> list[int]:
    """Try a micro-batch sample by sample. Sharded layers need every rank, so there the whole micro-batch is named."""
    if run.layout.is_sharded:
        return list(part.ids)
    single = [
        Loaded(run.data.batch(np.array([i]), np.array([e])), np.array([i]), np.array([e]))
        for i, e in zip(part.ids, part.epochs, strict=True)
    ]
    return [int(one.ids[0]) for one in single if not _is_finite(run, one)] or list(part.ids)


def _is_finite(run: Run, part: Loaded) -> bool:
    """Run one forward and backward on this rank alone and look at the loss and every gradient."""
    run.layout.zero_grad()
    run.layout.begin_micro(is_last=False)
    with run.precision.context():
        loss = run.task.loss(run.model, to_device(part.batch, run.ranks.device))
    loss.total.backward()
    grads = [run.layout.local(p.grad) for p in run.model.parameters() if p.grad is not None]
    norm = math.fsum(float(grad.float().abs().sum()) for grad in grads)
    return math.isfinite(float(loss.total.detach())) and math.isfinite(norm)
