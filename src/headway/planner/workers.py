"""Data loader processes: a number a rank, or one for all ranks together, as a guide with one process counts them."""

from __future__ import annotations

from collections.abc import Mapping

from headway.config import ParallelConfig
from headway.planner.record import PlanWarning


def share_workers(
    asked: ParallelConfig, layers: Mapping[str, int], *, ranks: int, cores: int | None
) -> tuple[int, list[PlanWarning]]:
    """Return the loader processes per rank, and a warning where a guide's number is that of a larger machine.

    How many there are never changes a batch, so a number that does not divide is rounded down, and one for 128 cores is
    cut to the cores that are here.
    """
    total = asked.all_workers
    if total is None or layers.get("parallel.workers", 0) > layers.get("parallel.all_workers", 0):
        return asked.workers, []
    share = max(1, total // ranks)
    most = max(1, (cores or share * ranks) // ranks)
    if share <= most:
        return share, []
    facts = {"total": str(total), "cores": str(cores), "workers": str(most), "ranks": str(ranks)}
    return most, [PlanWarning(code="plan/workers-over-cores", facts=facts)]
