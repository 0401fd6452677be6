"""What is known about an end, and what is made of it."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Sureness = Literal["certain", "likely", "possible"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitStatus:
    """How a process ended. All fields None: it is dead, but nobody could say how."""

    code: int | None = None
    """Exit code, when it ended by itself."""
    signal: int | None = None
    """Signal that ended it."""
    is_oom_kill: bool = False
    """The kernel counted an out-of-memory kill in our control group since the attempt began."""

    @property
    def signal_name(self) -> str | None:
        """`SIGKILL` and the like."""
        if self.signal is None:
            return None
        try:
            return signal.Signals(self.signal).name
        except ValueError:
            return f"signal {self.signal}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One line that proves something."""

    number: int
    """Of the line in the log, from 1; 0: not from the log."""
    text: str
    rank: int | None = None
    times: int = 1
    """How often it was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One thing to do, its values filled in."""

    en: str
    zh: str
    command: str = ""
    setting: str = ""
    """`key=value` for the run's own config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """A finding that only follows from the cause."""

    code: str
    category: str
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The class of a failure and what it means for the next attempt."""

    kind: str
    """Class, as it is in `incident.class`: `device-out-of-memory`, `killed`, `python-exception`, …"""
    code: str
    """Message code: the headway error's own, or `diagnose/<kind>`."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """What the message's placeholders stand for."""
    is_transient: bool
    """Trying again from the last checkpoint may well go past it."""
    is_cascade: bool = False
    """Only the echo of another rank's end."""
    is_hang: bool = False
    """Nothing ended by itself: the ranks hung and were ended by us."""
    evidence: str = ""
    """The line that decided it."""
    category: str = ""
    """One of the categories of the error book; empty: known to the supervisor only."""
    sure: Sureness = "likely"
    why: tuple[str, ...] = ()
    """Message codes of the reasons for `sure`."""
    lines: tuple[Evidence, ...] = ()
    """All evidence, in the order of the log."""
    consequences: tuple[Consequence, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    """Cheapest first."""
    others: tuple[Diagnosis, ...] = ()
    """Further causes that do not follow from this one."""

    def to_json(self) -> dict[str, Any]:
        """Return the plain form of `headway diagnose --json`."""
        return {
            "code": self.code,
            "class": self.kind,
            "category": self.category,
            "sure": self.sure,
            "why": list(self.why),
            "facts": {name: str(value) for name, value in self.facts.items()},
            "is_transient": self.is_transient,
            "evidence": [_plain(one) for one in self.lines],
            "consequences": [
                {"code": one.code, "category": one.category, **_plain(one.evidence)} for one in self.consequences
            ],
            "fixes": [
                {"en": one.en, "zh": one.zh, "command": one.command or None, "set": one.setting or None}
                for one in self.remedies
            ],
        }


def _plain(evidence: Evidence) -> dict[str, Any]:
    return {"line": evidence.number or None, "text": evidence.text, "rank": evidence.rank, "times": evidence.times}
