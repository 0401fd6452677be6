"""How a run ended, and the interface of whoever watches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from headway.diagnosis import Diagnosis, ExitStatus
from headway.telemetry import Beat

State = Literal["done", "stopped", "failed", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One failure: the first failing rank, why, and what was done about it."""

    attempt: int
    rank: int | None
    """First failing rank; none when no rank could be started."""
    step: int
    """Steps that rank had finished."""
    diagnosis: Diagnosis
    status: ExitStatus
    traceback: str
    """The rank's traceback, or the crash report it printed; may be empty."""
    action: Literal["restart", "stop"]
    others: tuple[int, ...] = ()
    """Ranks that ended after it in the same attempt, by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended."""

    state: State
    exit_code: int
    """As in the table of exit codes: 0, 5, 6, 93, 130, 143, or the code a rank's own error carries."""
    steps: int
    """Optimizer steps finished."""
    attempts: int
    """Attempts of this launch."""
    why: str
    """Message code of the reason."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """What the placeholders of `why` stand for."""
    incident: Incident | None = None
    """The last failure, when the run ended by it."""


class Observer(Protocol):
    """Whoever shows the run. Called from the supervisor's loop, so it must return at once."""

    def event(self, event: dict[str, Any]) -> None:
        """Take an event as it is in events.jsonl."""
        ...

    def line(self, rank: int, line: bytes) -> None:
        """Take one line a rank printed: raw bytes, at most 16 KiB, not made safe for a terminal."""
        ...

    def tick(self, beats: list[Beat | None]) -> None:
        """Take every rank's heartbeat, about ten times per second; None: no word yet in this attempt."""
        ...


@runtime_checkable
class BarObserver(Protocol):
    """An observer that also follows bars which are drawn again and again, and counts what a flood hides."""

    def bar(self, rank: int, state: bytes) -> None:
        """Take the latest state of a rank's bar."""
        ...

    def skipped(self, num: int) -> None:
        """Take the number of lines that were not handed on."""
        ...


class SilentObserver:
    """Shows nothing."""

    def event(self, event: dict[str, Any]) -> None:
        """Take an event."""

    def line(self, rank: int, line: bytes) -> None:
        """Take a line."""

    def tick(self, beats: list[Beat | None]) -> None:
        """Take the heartbeats."""
