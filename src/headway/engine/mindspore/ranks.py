"""Ranks that talk through MindSpore's own collectives, and the scheduler process these need."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from mindspore.communication import init
from numpy.typing import NDArray

_SCHEDULER = "import mindspore as ms; from mindspore.communication import init; ms.set_device('CPU'); init()"
_LEAVE_S = 20.0


@dataclass(slots=True)
class Ranks:
    """This process among the others."""

    rank: int
    world_size: int
    scheduler: subprocess.Popen[bytes] | None = None
    """Held by rank 0: it introduces the workers to each other."""

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Add small arrays up over the ranks."""
        return values if self.world_size == 1 else self.sum_tensor(Tensor(values.astype(np.float32))).asnumpy()

    def sum_tensor(self, tensor: Tensor) -> Tensor:
        """Add a tensor up over the ranks."""
        return tensor if self.world_size == 1 else ops.AllReduce(ops.ReduceOp.SUM)(tensor)

    def from_first(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return rank 0's array on every rank."""
        if self.world_size == 1:
            return values
        # A sum with zeros: what rank 0 holds arrives bit for bit.
        return self.sum(values if self.rank == 0 else np.zeros_like(values))

    def leave(self) -> None:
        """Wait for the others, then let the scheduler go."""
        if self.world_size > 1:
            self.sum(np.zeros(1, np.float32))
        if self.scheduler is not None:
            try:
                self.scheduler.wait(_LEAVE_S if self.world_size == 1 else 1.0)
            except subprocess.TimeoutExpired:
                self.scheduler.kill()
                self.scheduler.wait()


def join(job: dict[str, Any]) -> Ranks:
    """Meet the other ranks; what `msrun` would set in the environment is set here."""
    ranks = Ranks(job["rank"], job["world_size"])
    if ranks.world_size == 1:
        return ranks
    shared = {
        "MS_WORKER_NUM": str(ranks.world_size),
        "MS_SCHED_HOST": job.get("master_address", "127.0.0.1"),
        "MS_SCHED_PORT": str(job["master_port"]),
    }
    if ranks.rank == 0:
        # The supervisor holds the port for us until the scheduler, which cannot take an open socket, binds it.
        if job["listen_fd"] is not None:
            os.close(job["listen_fd"])
        env = {**os.environ, **shared, "MS_ROLE": "MS_SCHED"}
        ranks.scheduler = subprocess.Popen([sys.executable, "-P", "-c", _SCHEDULER], env=env)
    os.environ.update({**shared, "MS_ROLE": "MS_WORKER", "MS_NODE_ID": str(ranks.rank)})
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.STAND_ALONE)
    return ranks
