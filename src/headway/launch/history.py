"""What a run says: events into its history, and everything to whoever watches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from headway.diagnosis import ExitStatus
from headway.launch.attempt import Attempt
from headway.launch.blame import incident_facts
from headway.launch.outcome import BarObserver, Incident, Observer, Outcome, SilentObserver
from headway.telemetry import Beat, Event, RunDir, read_events

_SHOWN_LINES: Final = 400
"""Most lines of one reading (256 KiB) that are shown."""


class Events(Protocol):
    """Where events go: the run's own log, or the link to the node that writes it."""

    def append(self, kind: str, **facts: object) -> Event:
        """Keep an event; return it as it is kept."""
        ...


class History:
    """Writes the history and feeds the screen; a screen that breaks is left, the run continues."""

    def __init__(self, events: Events, observer: Observer) -> None:
        self._events, self._observer = events, observer
        self._best: dict[str, Any] | None = None
        self._warned: set[object] = set()

    def emit(self, kind: str, **facts: object) -> None:
        """Write an event and show it."""
        if kind == "warning":
            self._warned.add(facts.get("code"))
        self._show(lambda: self._observer.event(self._events.append(kind, **facts)))

    def has_warned(self, code: str) -> bool:
        """Say whether a warning was given before."""
        return code in self._warned

    def rank_event(self, event: dict[str, Any]) -> None:
        """Write an event a rank has reported, under our own number and clock."""
        if event["kind"] == "validation" and event.get("best"):
            self._best = {"step": event.get("step"), "measures": event.get("measures")}
        self.emit(event["kind"], **{name: fact for name, fact in event.items() if name not in ("kind", "seq", "t")})

    def lines(self, rank: int, lines: list[bytes]) -> None:
        """Show what a rank has printed; of a flood, which is whole in the log, only the beginning."""
        for line in lines[:_SHOWN_LINES]:
            self._show(partial(self._observer.line, rank, line))
        if len(lines) > _SHOWN_LINES and isinstance(self._observer, BarObserver):
            self._show(partial(self._observer.skipped, len(lines) - _SHOWN_LINES))

    def bar(self, rank: int, state: bytes) -> None:
        """Show the latest state of a rank's bar."""
        if isinstance(self._observer, BarObserver):
            self._show(partial(self._observer.bar, rank, state))

    def beats(self, beats: list[Beat | None]) -> None:
        """Show every rank's heartbeat."""
        self._show(lambda: self._observer.tick(beats))

    def gap(self, path: Path, err: OSError) -> None:
        """Say that a log could not be written."""
        self.emit("warning", code="launch/log-gap", facts={"path": str(path), "why": str(err)})

    def attempt_ended(self, attempt: Attempt, how: str, incident: Incident | None = None) -> None:
        """Write down how an attempt went, rank by rank."""
        for rank in attempt.ranks:
            status = rank.status or ExitStatus()
            facts = {"rank": rank.rank, "attempt": attempt.number, "code": status.code, "signal": status.signal}
            self.emit("rank_exited", **facts, seen=rank.seen_t, ours=rank.is_stopped_by_us)
        if incident is not None:
            self.incident(incident)
        self.emit("attempt_ended", attempt=attempt.number, how=how)

    def incident(self, incident: Incident) -> None:
        """Write down a failure."""
        self.emit("incident", **incident_facts(incident))

    def run_ended(self, outcome: Outcome) -> None:
        """Write the last line of the history."""
        self.emit(
            "run_ended",
            state=outcome.state,
            exit_code=outcome.exit_code,
            steps=outcome.steps,
            best=self._best,
            why=outcome.why,
            facts={name: str(value) for name, value in outcome.facts.items()},
        )

    def _show(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as err:  # border: supervisor; a broken screen must not end a run
            self._observer = SilentObserver()
            self._events.append("warning", code="launch/screen-broken", facts={"why": f"{type(err).__name__}: {err}"})


def read_past(run: RunDir) -> tuple[int, int | None]:
    """Return the number of a run's last attempt, 0 for none, and the step of the newest checkpoint it has committed."""
    past = read_events(run.events)
    return max(_numbers(past, "attempt_started", "attempt"), default=0), max(
        _numbers(past, "checkpoint_committed", "step"), default=None
    )


def _numbers(past: list[Event], kind: str, fact: str) -> list[int]:
    return [event[fact] for event in past if event.get("kind") == kind and isinstance(event.get(fact), int)]
