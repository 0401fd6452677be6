"""The two questions a supervisor asks: what is a rank (`Program`), and who decides and where the ranks are (`Crew`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # names of types; the modules behind them import this one
    from headway.diagnosis import Hang
    from headway.launch.attempt import Attempt, RankProcess
    from headway.launch.hearing import Hearing
    from headway.launch.history import History
    from headway.launch.outcome import Outcome, State
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
    local_size: int = 0
    """Ranks of this seat's node; 0: all of them."""
    num_nodes: int = 1
    network: Mapping[str, str] = field(default_factory=dict)
    """Variables that lead collectives over the network between the nodes."""

    def names(self) -> dict[str, str]:
        """Return the variables that every distributed framework reads."""
        return {
            "RANK": str(self.rank),
            "LOCAL_RANK": str(self.local_rank),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_WORLD_SIZE": str(self.local_size or self.world_size),
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
            **self.network,
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
        """Look for ranks that hang; return a hang when there is a new one."""

    def tend(self, attempt: Attempt, beats: list[Beat | None]) -> None:
        """Do what is due while the ranks train."""

    def hear_end(self, rank: RankProcess, attempt: Attempt) -> None:
        """Take in what a rank's end means here."""

    def ask_to_stop(self, attempt: Attempt, stop: Stop) -> None:
        """Ask all ranks to save and end."""

    def remind(self, attempt: Attempt, now: float) -> None:
        """Ask again those who have not heard it; called ten times per second once a stop was asked for."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Muster:
    """Whether the nodes are there that the next attempt needs."""

    is_ready: bool = True
    is_over: bool = False
    """They will not come, and nothing can be done without them."""
    state: State = "stopped"
    exit_code: int = 6
    why: str = ""
    """Message code of the reason."""
    facts: Mapping[str, object] = field(default_factory=dict)


class Chief(Protocol):
    """What the supervisor of a run does when a crew hears of it on another node."""

    def on_signal(self, signum: int) -> None:
        """Take a signal as if it had been sent to us."""

    def on_far_ranks(self) -> None:
        """Look again whether all ranks are there: some on another node have been forked, or never will be."""

    def on_far_hang(self, found: Hang) -> None:
        """Act on ranks of another node that hang."""


class Crew(Protocol):
    """Who decides and where the ranks are: `Alone`, or the leader of several nodes (`nodes.leader.Leader`)."""

    @property
    def world_size(self) -> int:
        """Ranks of all nodes."""

    @property
    def address(self) -> str:
        """Where rank 0, which is always here, waits for the others."""

    def attach(self, chief: Chief, hearing: Hearing, history: History) -> None:
        """Begin to listen to other nodes."""

    def muster(self) -> Muster:
        """Say whether the next attempt can begin."""

    def take_ranks(self, num_ranks: int) -> None:
        """Continue with another number of ranks; asked for where this node is the only one."""

    def seats(self, attempt: int, port: int) -> tuple[Seat, ...]:
        """Return the seats of all nodes, this one's first; node 0 is this one."""

    def begin(self, attempt: Attempt) -> None:
        """Let the other nodes start their ranks."""

    def ask_to_stop(self, stop: Stop) -> None:
        """Let the other nodes ask their ranks to save and end."""

    def ask_to_save(self, signum: int) -> None:
        """Let the other nodes pass on a signal that does not ask for the end."""

    def kill(self) -> None:
        """Let the other nodes end their ranks at once."""

    def tick(self, now: float) -> None:
        """Look after the links; called ten times per second."""

    def beats(self, attempt: Attempt, here: list[Beat | None]) -> list[Beat | None]:
        """Return every rank's heartbeat by our clock, given what is seen of them here."""

    def agree(self, local: Verdict) -> Verdict:
        """Return what all nodes do, given what this one would do."""

    def end(self, attempt: Attempt) -> None:
        """Every rank has ended: let the other nodes clear up behind theirs."""

    def close(self, outcome: Outcome | None) -> None:
        """Tell the other nodes how it ended, and wait until nothing of the run is left there."""


class Alone:
    """One node: all seats are here, its word counts, and there is nobody else to tell."""

    address = "127.0.0.1"

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size

    def attach(self, chief: Chief, hearing: Hearing, history: History) -> None:
        """Nobody else is heard."""

    def muster(self) -> Muster:
        """We are there."""
        return Muster()

    def take_ranks(self, num_ranks: int) -> None:
        """Continue with another number of ranks."""
        self.world_size = num_ranks

    def seats(self, attempt: int, port: int) -> tuple[Seat, ...]:
        """Return one seat for every rank."""
        return tuple(
            Seat(attempt=attempt, rank=rank, local_rank=rank, world_size=self.world_size, port=port)
            for rank in range(self.world_size)
        )

    def begin(self, attempt: Attempt) -> None:
        """All ranks are started here."""

    def ask_to_stop(self, stop: Stop) -> None:
        """All ranks were asked here."""

    def ask_to_save(self, signum: int) -> None:
        """All ranks were asked here."""

    def kill(self) -> None:
        """All ranks were ended here."""

    def tick(self, now: float) -> None:
        """There are no links."""

    def beats(self, attempt: Attempt, here: list[Beat | None]) -> list[Beat | None]:
        """Return what is seen here."""
        return here

    def agree(self, local: Verdict) -> Verdict:
        """Return the verdict of this node."""
        return local

    def end(self, attempt: Attempt) -> None:
        """Nothing runs elsewhere."""

    def close(self, outcome: Outcome | None) -> None:
        """There is nobody to tell."""
