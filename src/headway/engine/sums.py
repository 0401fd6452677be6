"""What all ranks must agree on once a step: loss, count, whose loss is not finite, who was asked to stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from headway.engine.parallel import Ranks
from headway.task import Loss

_LOSS, _COUNT, _STOP, _SAVE, _COPY, _FLAGS = range(6)


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums over all ranks and micro-batches of one step."""

    loss: float
    count: float
    is_stop_wanted: bool
    """Some rank was asked to stop."""
    is_save_wanted: bool
    """Some rank's clock says it is time to save."""
    is_copy_wanted: bool
    """Rank 0 finds a copy in memory cheap enough by now."""
    bad_ranks: tuple[int, ...]
    """Ranks whose own loss is not a finite number."""
    norm: float = 0.0
    """The global norm of the summed gradients, as they are."""


class StepSums:
    """Adds up one step's losses and reduces them in one small message while backward is still running."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._losses: list[Tensor] = []
        self._counts: list[Tensor | int] = []
        self._sent: Tensor | None = None
        self._work: dist.Work | None = None
        self._wishes = (False, False, False)

    def add(self, loss: Loss) -> None:
        """Take in one micro-batch. Nothing waits for the device here."""
        self._losses.append(loss.total.detach())
        self._counts.append(loss.count)

    def send(self, *, is_stop_wanted: bool, is_save_wanted: bool, is_copy_wanted: bool) -> None:
        """Start the reduction; called before the last backward so that it costs nothing."""
        self._wishes = is_stop_wanted, is_save_wanted, is_copy_wanted
        if self._ranks.world_size == 1:
            return
        loss = sum(self._losses[1:], self._losses[0].double())
        sent = torch.zeros(_FLAGS + self._ranks.world_size, dtype=torch.float64, device=self._ranks.device)
        sent[_LOSS] = loss
        sent[_COUNT] = self._count()
        sent[_STOP] = float(is_stop_wanted)
        sent[_SAVE] = float(is_save_wanted)
        sent[_COPY] = float(is_copy_wanted)
        sent[_FLAGS + self._ranks.rank] = (~torch.isfinite(loss)).double()
        self._sent, self._work = sent, dist.all_reduce(sent, async_op=True)

    def wait(self) -> None:
        """Wait until the sums of all ranks are here."""
        if self._work is not None:
            self._work.wait()

    def read(self, norm: Tensor) -> Totals:
        """Return the sums, and the norm of the gradients; the one place of a step where the host waits for a device."""
        if self._work is None or self._sent is None:
            *losses, count, size = _read([*self._losses, self._count(), norm])
            loss = sum(losses)
            totals = Totals(loss, count, *self._wishes, () if math.isfinite(loss) else (0,), size)
        else:
            *values, size = (*self._sent.tolist(), norm.item()) if self._sent.is_cpu else _read_both(self._sent, norm)
            bad = tuple(rank for rank, flag in enumerate(values[_FLAGS:]) if flag)
            wishes = (values[_STOP] > 0, values[_SAVE] > 0, values[_COPY] > 0)
            totals = Totals(values[_LOSS], values[_COUNT], *wishes, bad, size)
        self._losses.clear()
        self._counts.clear()
        return totals

    def _count(self) -> Tensor | int:
        """Return what the losses are of; what a task keeps on the host is added up there."""
        counts = [int(one) if isinstance(one, Tensor) and one.is_cpu else one for one in self._counts]
        return sum(counts[1:], counts[0])


def _read(values: Sequence[Tensor | int]) -> list[float]:
    """Return the values of single numbers; of those on a device with one copy."""
    there = [value for value in values if isinstance(value, Tensor) and not value.is_cpu]
    told = iter(torch.stack([value.double() for value in there]).tolist() if there else ())
    return [next(told) if isinstance(value, Tensor) and not value.is_cpu else float(value) for value in values]


def _read_both(row: Tensor, last: Tensor) -> list[float]:
    found: list[float] = torch.cat((row, last.double().reshape(1))).tolist()
    return found
