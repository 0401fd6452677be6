"""Why a run of ours failed: what its supervisor saw, and what its log says where that names the cause more exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headway.diagnosis.find_cause import LogDiagnosis, diagnose_log, make_remedies
from headway.diagnosis.record import Diagnosis, Evidence
from headway.diagnosis.rulebook import Audience, Rulebook
from headway.telemetry import RunDir, read_events, read_record, run_state

_VAGUE: Final = frozenset(
    {"exited", "python-exception", "killed", "crashed", "connection-lost", "unknown-end", "nursery-died", "preempted"}
)
"""Classes that say how a rank ended, not why."""


def diagnose_run(run: RunDir, book: Rulebook) -> LogDiagnosis:
    """Return why a run has failed; a run that is done, or continues after its restarts, has not."""
    state, events = run_state(run), read_events(run.events)
    incidents = [event for event in events if event.get("kind") == "incident"]
    audience: Audience = "script" if read_record(run.job).get("kind") == "foreign" else "headway"
    facts = run_facts(run)
    if run.log.is_file():
        with run.log.open("rb") as file:
            read = diagnose_log(file, book, facts=facts, audience=audience)
    else:
        read = LogDiagnosis(cause=None, num_lines=0, num_bytes=0)
    is_over = state.state in ("failed", "lost", "interrupted")
    if not is_over or (not incidents and state.state == "interrupted"):
        return replace(read, cause=None)
    if not incidents:
        return read
    seen = _from_incident(incidents[-1], book, facts, audience)
    return replace(read, cause=_join(seen, read.cause))


def run_facts(run: RunDir) -> dict[str, object]:
    """Return the run's own numbers, for the fixes."""
    plan = read_record(run.plan)
    facts: dict[str, object] = {"run": run.name}
    micro, workers = plan.get("micro_batch"), plan.get("workers")
    if isinstance(micro, int) and micro > 1:
        facts |= {"per_device": micro, "half": micro // 2}
    if isinstance(workers, int):
        facts["workers"] = workers
    return facts


def _from_incident(
    event: Mapping[str, Any], book: Rulebook, known: Mapping[str, object], audience: Audience
) -> Diagnosis:
    """Return the supervisor's own finding. Any: an event as it is in the history."""
    code, told = str(event.get("code")), event.get("facts")
    facts = {**known, **(told if isinstance(told, dict) else {})}
    rank = event.get("rank")
    if isinstance(rank, int):
        facts.setdefault("rank", rank)
    rule = book.rules.get(code.removeprefix("diagnose/").removeprefix("foreign-"))
    evidence = str(event.get("evidence") or event.get("text") or "")
    return Diagnosis(
        kind=str(event.get("class")),
        code=code,
        facts=facts,
        is_transient=event.get("action") == "restart",
        evidence=evidence,
        category=rule.category if rule else "",
        sure="certain",
        why=("ui/why-exit",),
        lines=(Evidence(number=0, text=evidence, rank=rank if isinstance(rank, int) else None),),
        remedies=make_remedies(rule, facts, audience) if rule else (),
    )


def _join(seen: Diagnosis, read: Diagnosis | None) -> Diagnosis:
    """Return the supervisor's finding with the log's evidence; the log's own where only that names a cause."""
    if read is None:
        return seen
    if seen.kind in _VAGUE and read.kind not in _VAGUE and read.sure != "possible":
        return replace(read, facts={**read.facts, **_place(seen)}, why=(*read.why, "ui/why-exit"))
    if seen.code.endswith(read.code.partition("/")[2]):
        return replace(seen, lines=read.lines, consequences=read.consequences, others=read.others)
    return seen


def _place(seen: Diagnosis) -> dict[str, object]:
    return {name: seen.facts[name] for name in ("rank",) if name in seen.facts}
