"""The two questions a supervisor asks: what is a rank (`Program`), and who decides and where the ranks are (`Crew`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # names of types; the modules behind them import this one
    from headway.diagnosis import Hang
    from headway.launch.attempt import Attempt, RankProcess
    from headway.launch.restarts import RestartBudget
    from headway.launch.verdict import Scene, Stop, Verdict
    from headway.telemetry import Beat


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
    files: Mapping[str, int] = field(default_factory=dict)
    """Open files that the entry is handed too, by the names under which it is called with them."""


class Program(Protocol):
    """What the ranks of a run are: `own_engine.OwnEngine` or `foreign.line.LineProgram`."""

    @property
    def log_bytes(self) -> int | None:
        """Size at which a log continues in a rotating tail; None: it is kept in full."""

    @property
    def is_stopping(self) -> bool:
        """It was asked to stop in a way that lets one rank save after another has failed."""

    def begin(self, attempt: int) -> int | None:
        """Forget the attempt before; return the port where its ranks will meet; None: rank 0 is handed a socket."""

    def order(self, seat: Seat) -> RankOrder:
        """Return what the rank in this seat is started with."""

    def lines(self, rank: int, lines: list[bytes]) -> None:
        """Take what a rank has printed."""

    def beats(self, attempt: Attempt) -> list[Beat | None]:
        """Return where every rank is; None: no word yet in this attempt."""

    def look(self, attempt: Attempt, beats: list[Beat | None]) -> Hang | None:
        """Look for ranks that stand still; return a hang when there is a new one."""

    def hear_end(self, rank: RankProcess, attempt: Attempt) -> None:
        """Take in what a rank's end means here."""

    def ask_to_stop(self, attempt: Attempt, stop: Stop) -> None:
        """Ask all ranks to save and end."""

    def remind(self, attempt: Attempt, now: float) -> None:
        """Ask again those who have not heard it; called ten times a second once a stop was asked for."""

    def ask_to_save(self, attempt: Attempt, signum: int) -> None:
        """Pass on a signal that does not ask for the end."""

    def waits(self, attempt: Attempt, stop: Stop | None, now: float) -> bool:
        """Say whether processes that the ranks have left behind are still waited for."""

    def judge(self, scene: Scene) -> Verdict:
        """Decide what follows an attempt all of whose ranks have ended."""

    def make_budget(self, committed: int | None) -> RestartBudget:
        """Return how often it may be restarted."""

    def wait_s(self, budget: RestartBudget) -> float:
        """Return how long to wait before the next attempt."""

    def why_stopped(self, *, has_begun: bool) -> str:
        """Return the message code for a stop while no rank lives."""

    def close(self) -> None:
        """Write what is still to be written and let go of everything."""


class Crew(Protocol):
    """Who decides and where the ranks are: `Alone`; several nodes have a leader and followers."""

    @property
    def world_size(self) -> int:
        """Ranks of all nodes."""

    def seats(self, attempt: int, port: int) -> tuple[Seat, ...]:
        """Return the seats of this node."""

    def agree(self, local: Verdict) -> Verdict:
        """Return what all nodes do, given what this one would do."""


class Alone:
    """One node: all seats are here, and its word counts."""

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size

    def seats(self, attempt: int, port: int) -> tuple[Seat, ...]:
        """Return one seat for every rank."""
        return tuple(
            Seat(attempt=attempt, rank=rank, local_rank=rank, world_size=self.world_size, port=port)
            for rank in range(self.world_size)
        )

    def agree(self, local: Verdict) -> Verdict:
        """Return the verdict of this node."""
        return local
