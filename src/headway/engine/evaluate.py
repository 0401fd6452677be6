"""Validation: sums over batches and ranks, divided once."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from headway.engine.parallel import Ranks, share_buffers
from headway.engine.precision import Precision
from headway.engine.rank_state import Run
from headway.task import Data, Task, to_device
from headway.task.order import Int64


def evaluate(run: Run) -> dict[str, float]:
    """Return the measures over the validation set, the same on every rank."""
    share_buffers(run.buffers, run.ranks)
    with run.ema.applied() if run.ema else nullcontext():
        run.model.eval()
        sums = sum_measures(
            run.task,
            run.model,
            run.eval_data,
            ranks=run.ranks,
            precision=run.precision,
            size=run.plan.micro_batch,
            total=run.config.eval.samples,
        )
        # While the average is in place: what the model has gathered of it must not be trained on.
        run.layout.reshard()
    set_train_mode(run)
    return run.task.summarize(sums)


def sum_measures(
    task: Task, model: nn.Module, data: Data, *, ranks: Ranks, precision: Precision, size: int, total: int | None
) -> dict[str, float]:
    """Add up the task's measures over the first `total` samples, dealt out over the ranks batch by batch."""
    total = min(len(data), total or len(data))
    num_batches = -(-total // size)
    sums: dict[str, Tensor] = {}
    with torch.no_grad(), own_draws(ranks.device):
        for turn in range(-(-num_batches // ranks.world_size)):
            index = turn * ranks.world_size + ranks.rank
            # Every rank runs the same number of forwards, because sharded layers meet in each; a batch past the
            # end fills in and counts for nothing.
            is_real = index < num_batches
            batch = data.batch(*_ids(index if is_real else 0, size, total))
            torch.manual_seed(index)
            with precision.context():
                measured = task.measures(model, to_device(batch, ranks.device))
            for name, found in measured.items():
                # A count may well be made on the host; what is summed over the ranks must be where they meet.
                value = found.to(ranks.device)
                part = value.double() if is_real else torch.zeros_like(value, dtype=torch.float64)
                sums[name] = sums[name] + part if name in sums else part
    return _over_ranks(sums, ranks)


def run_trial(
    task: Task, model: nn.Module, *, ranks: Ranks, precision: Precision
) -> dict[str, float] | BaseException | None:
    """Let the task use the model as its users will; return its measures, None when it has none, or what it raised.

    A trial may run out of memory or fail in a simulator on one rank alone, or have nothing for it to do. That must cost
    neither the run nor leave the other ranks waiting, so each tells all others what it found or why it failed.
    """
    failure: BaseException | None = None
    mine: dict[str, float] = {}
    model.eval()
    try:
        with torch.no_grad(), own_draws(ranks.device), precision.context():
            torch.manual_seed(ranks.rank)
            found = task.trial(model, part=ranks.rank, parts=ranks.world_size)
        mine = {name: float(value) for name, value in (found or {}).items()}
    except (Exception, SystemExit) as error:  # border: a trial is an extra; the run and its checkpoint are worth more
        failure = error
    why = None if failure is None else f"rank {ranks.rank}: {failure!r}"
    told: list[tuple[str | None, dict[str, float]]] = [(why, mine)] * ranks.world_size
    if ranks.world_size > 1:
        dist.all_gather_object(told, (why, mine))
    failed = [text for text, _ in told if text is not None]
    if failed:
        return failure or RuntimeError(failed[0])
    names = sorted({name for _, part in told for name in part})
    sums = {name: sum(part.get(name, 0.0) for _, part in told) for name in names}
    try:
        return task.summarize_trial(sums) if sums else None
    except Exception as error:  # border: as above
        return error


def _over_ranks(sums: dict[str, Tensor], ranks: Ranks) -> dict[str, float]:
    """Add named sums over the ranks; every rank has the same names."""
    names = sorted(sums)
    values = torch.stack([sums[name] for name in names])
    if ranks.world_size > 1:
        dist.all_reduce(values)
    return dict(zip(names, values.tolist(), strict=True))


def own_draws(device: torch.device) -> AbstractContextManager[None]:
    """Keep what is drawn inside from moving the training's generators."""
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


def set_train_mode(run: Run) -> None:
    """Put the model into training mode, frozen parts excepted."""
    run.model.train()
    for module in run.task.frozen(run.model):
        module.eval()


def _ids(index: int, size: int, total: int) -> tuple[Int64, Int64]:
    ids = np.arange(index * size, min(total, (index + 1) * size), dtype=np.int64)
    return ids, np.zeros_like(ids)
