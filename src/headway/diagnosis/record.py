"""What is known about an end, and what is made of it."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field


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
class Diagnosis:
    """The class of a failure and what it means for the next attempt."""

    kind: str
    """Class, as it stands in `incident.class`: `device-out-of-memory`, `killed`, `python-exception`, …"""
    code: str
    """Message code: the headway error's own, or `diagnose/<kind>`."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """What the message's placeholders stand for."""
    is_transient: bool
    """Trying again from the last checkpoint may well go past it."""
    is_cascade: bool = False
    """Only the echo of another rank's end."""
    is_hang: bool = False
    """Nothing ended by itself: the ranks stood still and were ended by us."""
    evidence: str = ""
    """The line that decided it."""
