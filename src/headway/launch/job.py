"""What the supervisor needs to know of a run, read from its job file, and what it tells each rank."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from headway.launch.foreign.line import HANG_S, Foreign, OnHang
from headway.launch.hook import hook_environment
from headway.messages import language
from headway.telemetry import RunDir, require_record

FOREIGN_LOG_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The launch side of job.json."""

    run: RunDir
    world_size: int
    threads: int
    gpus: tuple[int, ...]
    grace_s: float
    restarts: int
    foreign: Foreign | None = None
    """A line that is not ours; None: a recipe on our own engine."""
    on_hang: OnHang = "wait"
    hang_s: float = HANG_S
    """Shortest silence that is looked into."""

    @property
    def log_bytes(self) -> int | None:
        """Size at which a log goes on in a rotating tail; what our own engine prints is kept whole."""
        return None if self.foreign is None else FOREIGN_LOG_BYTES

    def order(self, rank: int, attempt: int, port: int) -> dict[str, Any]:
        """Return what a rank's entry is called with; the nursery adds the numbers of its open files."""
        # What job.json may not hold travels only in memory; the rank reads the rest there.
        has_secrets = self.foreign is not None and _has_secrets(self.foreign)
        return {
            **({"argv": list(self.foreign.argv)} if self.foreign is not None and has_secrets else {}),
            "run_dir": str(self.run.root.absolute()),
            "rank": rank,
            "local_rank": rank,
            "world_size": self.world_size,
            "attempt": attempt,
            "master_port": port,
            "lang": language(),
        }

    def environment(self, rank: int, port: int, attempt: int) -> dict[str, str]:
        """Return the names every distributed framework reads, for one rank."""
        if self.foreign is not None:
            own = self.foreign.environment(rank, self.world_size, port, attempt, self.restarts)
            hook = hook_environment(self.run.root, attempt, os.environ) if self.foreign.has_hook else {}
            return own | hook
        return {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_WORLD_SIZE": str(self.world_size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": str(self.threads),
            # Indexes are the driver's (PCI order), so CUDA must count the same way.
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": ",".join(str(gpu) for gpu in self.gpus),
        }


@lru_cache(maxsize=4)
def _has_secrets(foreign: Foreign) -> bool:
    return bool(list(foreign.argv) != foreign.to_json()["argv"])


def read_job(run: RunDir) -> Job:
    """Read the launch side of a run's job file; one that is damaged is refused by name."""
    return require_record(run.job, lambda data: _make_job(run, data))


def _make_job(run: RunDir, data: Any) -> Job:
    """Any: JSON, not yet checked."""
    plan, launch = data["plan"], data["config"]["launch"]
    foreign = Foreign.from_json(data["foreign"]) if data.get("kind") == "foreign" else None
    return Job(
        run=run,
        world_size=int(plan["world_size"]),
        threads=int(plan["threads"]),
        gpus=tuple(plan.get("gpus", ())),
        grace_s=float(launch["grace_s"]),
        restarts=int(launch["restarts"]),
        foreign=foreign,
        on_hang=foreign.on_hang if foreign is not None else launch.get("on_hang", "wait"),
        hang_s=foreign.hang_s if foreign is not None else HANG_S,
    )
