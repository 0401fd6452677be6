"""Which rank failed first, and why: one incident for one failure, however many ranks it took down."""

from __future__ import annotations

import signal
from typing import Any, Final, Literal

from headway.diagnosis import Diagnosis, ExitStatus, classify
from headway.launch.attempt import Attempt, RankProcess
from headway.launch.outcome import Incident
from headway.messages import Language, say

_CLEAR_SIGNALS: Final = {signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE}
EVIDENCE_S: Final = 0.3
"""How long others are heard after an exception: the words of the rank that caused it may be behind their echo. Longer
would only delay the restart."""


def evidence_window_s(rank: RankProcess) -> float:
    """Return how long the other ranks are heard after this one's failure.

    A signal from outside explains itself, and recovery waits for nobody. An exception may be the echo of another
    rank's end whose own words are still on their way.
    """
    is_clear = rank.error is None and rank.status is not None and rank.status.signal in _CLEAR_SIGNALS
    return 0.0 if is_clear else EVIDENCE_S


def own_failures(attempt: Attempt) -> list[RankProcess]:
    """Return the ranks that failed by themselves, first one first."""
    found = [rank for rank in attempt.ranks if rank.failed_at is not None and not _is_our_doing(rank)]
    # By one clock and never by number: rank 0 is as likely as any other to be the echo of another one's end.
    return sorted(found, key=lambda rank: rank.failed_at or 0.0)


def find_first(failures: list[RankProcess]) -> tuple[RankProcess, Diagnosis]:
    """Return the first failing rank and its diagnosis, echoes of other ranks' ends set aside."""
    found = [(rank, classify(rank.error, rank.status or ExitStatus(), rank.output.tail())) for rank in failures]
    return next(((rank, diagnosis) for rank, diagnosis in found if not diagnosis.is_cascade), found[0])


def make_incident(
    attempt: Attempt,
    rank: RankProcess,
    diagnosis: Diagnosis,
    *,
    step: int,
    action: Literal["restart", "stop"],
) -> Incident:
    """Write down one failure."""
    return Incident(
        attempt=attempt.number,
        rank=rank.rank,
        step=step,
        diagnosis=diagnosis,
        status=rank.status or ExitStatus(),
        traceback=find_traceback(rank),
        action=action,
        others=tuple(other.rank for other in own_failures(attempt) if other is not rank),
    )


def find_traceback(rank: RankProcess) -> str:
    """Return the rank's own traceback, or the crash report that it printed."""
    if rank.error is not None:
        return str(rank.error.get("traceback") or "").rstrip()
    text = rank.output.tail().decode(errors="replace")
    for mark in ("Fatal Python error", "Traceback (most recent call last)"):
        if mark in text:
            return text[text.rindex(mark) :].rstrip()
    return ""


def incident_facts(incident: Incident) -> dict[str, Any]:
    """Return an incident as it is in events.jsonl."""
    found = incident.diagnosis
    return {
        "attempt": incident.attempt,
        "rank": incident.rank,
        "step": incident.step,
        "class": found.kind,
        "code": found.code,
        "facts": {name: str(value) for name, value in found.facts.items()},
        "text": diagnosis_text(found),
        "evidence": found.evidence,
        "traceback": incident.traceback,
        "others": list(incident.others),
        "action": incident.action,
    }


def diagnosis_text(diagnosis: Diagnosis, lang: Language | None = None) -> str:
    """Return a diagnosis in words; a report that lacks a fact of its message still gets its own text through."""
    try:
        return say(diagnosis.code, lang, **diagnosis.facts)
    except (KeyError, ModuleNotFoundError):
        return diagnosis.evidence or diagnosis.kind


def _is_our_doing(rank: RankProcess) -> bool:
    """Say whether only our own signal ended it: it had reported nothing of its own."""
    if rank.error is not None or not rank.is_stopped_by_us or rank.status is None:
        return False
    return rank.status.signal in (signal.SIGKILL, signal.SIGTERM) or rank.status == ExitStatus()
