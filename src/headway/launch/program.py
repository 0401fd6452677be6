"""What a rank is: its seat among the others, and what the nursery is asked to start there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where one rank of one attempt runs and meets the others."""

    attempt: int
    rank: int
    local_rank: int
    world_size: int
    port: int
    node: int = 0
    address: str = "127.0.0.1"
    """Where rank 0 waits for the others."""

    def names(self) -> dict[str, str]:
        """Return the variables that every distributed framework reads."""
        return {
            "RANK": str(self.rank),
            "LOCAL_RANK": str(self.local_rank),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_WORLD_SIZE": str(self.world_size),
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOrder:
    """One rank to fork."""

    call: Mapping[str, Any]
    """What the entry is called with; the nursery adds `report_fd` and `listen_fd`."""
    env: Mapping[str, str]
    """Environment set over the nursery's own."""


class Program(Protocol):
    """What the ranks of a run are: `own_engine.OwnEngine` or `foreign.line.LineProgram`."""

    @property
    def log_bytes(self) -> int | None:
        """Size at which a log continues in a rotating tail; None: it is kept in full."""

    def order(self, seat: Seat) -> RankOrder:
        """Return what the rank in this seat is started with."""
