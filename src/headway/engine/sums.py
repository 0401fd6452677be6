"""What all ranks must agree on once a step: loss, count, whose loss is not finite, who was asked to stop."""

from __future__ import annotations

import math
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
        sent[_COUNT] = sum(self._counts[1:], self._counts[0])
        sent[_STOP] = float(is_stop_wanted)
        sent[_SAVE] = float(is_save_wanted)
        sent[_COPY] = float(is_copy_wanted)
        sent[_FLAGS + self._ranks.rank] = (~torch.isfinite(loss)).double()
        self._sent, self._work = sent, dist.all_reduce(sent, async_op=True)

    def wait(self) -> Totals:
        """Return the sums; the one point of a step where the host waits for the device."""
        if self._work is None or self._sent is None:
            loss = sum(value.item() for value in self._losses)
            count = float(sum(int(value) for value in self._counts))
            totals = Totals(loss, count, *self._wishes, () if math.isfinite(loss) else (0,))
        else:
            self._work.wait()
            values = self._sent.tolist()
            bad = tuple(rank for rank, flag in enumerate(values[_FLAGS:]) if flag)
            wishes = (values[_STOP] > 0, values[_SAVE] > 0, values[_COPY] > 0)
            totals = Totals(values[_LOSS], values[_COUNT], *wishes, bad)
        self._losses.clear()
        self._counts.clear()
        return totals
