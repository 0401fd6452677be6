"""What has been found and is not over: said once when it has lasted, and once more, with what it cost, when it is over.

In: what is seen at a moment. Out: facts of events: `finding` when something begins, `finding_over` when it has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Event = dict[str, Any]
CALM_S: Final = 60.0
"""A finding is over when nothing was seen of it for so long; one that comes and goes is said once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Something that is seen now."""

    code: str
    """Message code."""
    key: str = ""
    """Which of several: a GPU, a rank."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    slower: float = 0.0
    """Share of the time that is lost while it lasts."""
    ignored_s: float | None = None
    """What it costs until the end of the run if nobody acts; None: `slower` of what is left."""
    cure: str = ""
    """The setting, `key=value`, or the command that cures it."""
    lasts_s: float = 0.0
    """How long it must be seen before it is worth a word."""
    calm_s: float = CALM_S


@dataclass(slots=True)
class _Open:
    since: float
    last: float
    seen: Sighting
    is_said: bool = False
    cost_s: float = 0.0


@dataclass(slots=True)
class OpenFindings:
    """Remembers what is going on."""

    _open: dict[tuple[str, str], _Open] = field(default_factory=dict)
    _was: float | None = None

    def take(self, now: float, seen: Iterable[Sighting], left_s: float | None = None) -> list[Event]:
        """Return the events that follow from what is seen now.

        Args:
            now: seconds of any clock that is the same for all calls.
            left_s: how long the run has to go; None: not known.
        """
        spent_s = 0.0 if self._was is None else max(0.0, now - self._was)
        self._was = now
        for one in seen:
            known = self._open.setdefault((one.code, one.key), _Open(now, now, one))
            known.last, known.seen = now, one
            known.cost_s += spent_s * one.slower
        events: list[Event] = []
        for key, known in list(self._open.items()):
            if not known.is_said and known.last - known.since >= known.seen.lasts_s:
                known.is_said = True
                events.append(_began(known, left_s))
            if now - known.last >= known.seen.calm_s and known.last < now:
                del self._open[key]
                events += [_ended(known)] if known.is_said else []
        return events

    def close(self) -> list[Event]:
        """Return what is left open when the run ends: it keeps what it has cost."""
        found = [_ended(known) for known in self._open.values() if known.is_said]
        self._open.clear()
        return found

    def codes(self) -> set[str]:
        """Return the codes of what has been said and is not over."""
        return {known.seen.code for known in self._open.values() if known.is_said}


def _began(known: _Open, left_s: float | None) -> Event:
    seen = known.seen
    event = {"kind": "finding", "code": seen.code, "key": seen.key, "facts": dict(seen.facts), "since": known.since}
    ignored_s = seen.ignored_s
    if ignored_s is None and seen.slower > 0 and left_s is not None:
        ignored_s = seen.slower * left_s
    if ignored_s is not None:
        event["ignored_s"] = round(ignored_s, 1)
    return event | ({"cure": seen.cure} if seen.cure else {})


def _ended(known: _Open) -> Event:
    seen = known.seen
    lasted = {"seconds": round(known.last - known.since, 1), "cost_s": round(known.cost_s, 1)}
    return {"kind": "finding_over", "code": seen.code, "key": seen.key, **lasted, "facts": dict(seen.facts)}
