"""Which of a run's events and numbers are worth a message. Pure: events, rows and times in, alerts out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from headway.config.condition import NAMES, Condition
from headway.telemetry import number, section, words

END_KINDS: Final = ("finished", "failed", "stopped", "lost")
_ENDS: Final = {"done": "finished", "failed": "failed", "stopped": "stopped", "interrupted": "stopped"}
_FINDINGS: Final = {
    "devices/disk-low": "disk",
    "devices/gpu-hot": "heat",
    "devices/gpu-brake": "heat",
    "devices/gpu-silent": "gpu",
    "devices/ecc": "gpu",
    "devices/xid": "gpu",
    "devices/memory-low": "memory",
}
_WARNINGS: Final = {"launch/quiet": "no-progress"}
"""Warnings of the supervisor that are worth a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Something to tell."""

    kind: str
    """One of `alert.on`."""
    code: str
    """Message code of what is to be said."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Any: as in the event."""
    key: str = ""
    """Tells two of one code apart: the GPU, the rank, the condition."""

    @property
    def is_end(self) -> bool:
        """Whether it is the last one of its run."""
        return self.kind in END_KINDS


class AlertRules:
    """Reads a run from now on."""

    def __init__(self, kinds: Sequence[str], conditions: Sequence[Condition], no_progress_s: float) -> None:
        self._kinds = frozenset(kinds)
        self._conditions = dict.fromkeys(conditions, False)
        self._values: dict[str, float] = {}
        self._no_progress_s = no_progress_s
        self._moved: float | None = None
        self._is_quiet_told = False

    @property
    def needs_rows(self) -> bool:
        """Whether a condition asks for the numbers of steps."""
        return bool(self._conditions)

    def event(self, event: Mapping[str, Any]) -> list[Alert]:
        """Return what an event is worth."""
        found = list(self._judge(event))
        if event.get("kind") == "validation":
            step = number(event.get("step"))
            self._values |= {f"val.{name}": number(value) for name, value in section(event.get("measures")).items()}
            found += self._ask(step)
        return [alert for alert in found if alert.kind in self._kinds]

    def row(self, row: Mapping[str, Any]) -> list[Alert]:
        """Return what the numbers of a step are worth."""
        self._values |= {name: number(row[name]) for name in NAMES if row.get(name) is not None}
        return [alert for alert in self._ask(self._values.get("step", 0.0)) if alert.kind in self._kinds]

    def moved(self, now: float) -> None:
        """A step was seen; before the first one nothing is expected."""
        self._moved, self._is_quiet_told = now, False

    def pause(self) -> None:
        """Nothing is expected until the next step: the ranks have ended, and may start again."""
        self._moved = None

    def time(self, now: float) -> list[Alert]:
        """Return what the passing of time is worth."""
        if self._moved is None or self._is_quiet_told or now - self._moved < self._no_progress_s:
            return []
        self._is_quiet_told = True
        facts = {"seconds": round(now - self._moved)}
        alert = Alert(kind="no-progress", code="alert/no-progress", facts=facts)
        return [alert] if alert.kind in self._kinds else []

    def _judge(self, event: Mapping[str, Any]) -> list[Alert]:
        kind, code, facts = event.get("kind"), words(event.get("code")) or "", section(event.get("facts"))
        match kind:
            case "run_ended":
                what = _ENDS.get(str(event.get("state")), "failed")
                return [
                    Alert(kind=what, code=words(event.get("why")) or "", facts={**facts, "steps": event.get("steps")})
                ]
            case "incident" if event.get("action") == "restart":
                told = {**facts, "text": words(event.get("text")) or "", "rank": event.get("rank")}
                return [Alert(kind="restarted", code=code, facts=told, key=str(event.get("rank")))]
            case "hang":
                return [Alert(kind="hang", code=code, facts=facts, key=str(event.get("rank")))]
            case "finding":
                return [
                    Alert(kind=_FINDINGS.get(code, "finding"), code=code, facts=facts, key=str(event.get("key", "")))
                ]
            case "warning" if code in _WARNINGS:
                return [Alert(kind=_WARNINGS[code], code=code, facts=facts)]
        return []

    def _ask(self, step: float) -> list[Alert]:
        """Return the conditions that have become true."""
        found = []
        for condition, was_so in self._conditions.items():
            is_so = condition.holds(self._values)
            if is_so and not was_so:
                values = ", ".join(f"{name} = {self._values[name]:.6g}" for name in condition.names)
                facts = {"condition": condition.text, "step": int(step) if step == step else 0, "values": values}
                found.append(Alert(kind="metric", code="alert/metric", facts=facts, key=condition.text))
            if is_so is not None:
                self._conditions[condition] = is_so
        return found
