"""A rank of our own engine: what it is started with."""

from __future__ import annotations

from headway.launch.job import Job
from headway.launch.program import RankOrder, Seat
from headway.messages import language
from headway.telemetry import RunDir


class OwnEngine:
    """Ranks that train a recipe, report to the supervisor and save when asked."""

    log_bytes = None

    def __init__(self, run: RunDir, job: Job) -> None:
        self._run, self._job = run, job

    def order(self, seat: Seat) -> RankOrder:
        """Return what the rank in this seat is started with."""
        env = seat.names()
        if self._job.threads is not None:
            env["OMP_NUM_THREADS"] = str(self._job.threads)
        if self._job.devices is not None:
            # Indexes are the driver's (PCI order), so CUDA must count the same way.
            env |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(self._job.devices)}
        return RankOrder(call=rank_call(self._run, seat), env=env)


def rank_call(run: RunDir, seat: Seat) -> dict[str, object]:
    """Return what the entry of any rank is called with."""
    return {
        "run_dir": str(run.root.absolute()),
        "rank": seat.rank,
        "local_rank": seat.local_rank,
        "world_size": seat.world_size,
        "attempt": seat.attempt,
        "master_port": seat.port,
        "lang": language(),
    }
