"""One rank's end: from its own report, its exit and the end of its output to a class. The words are the rules'."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headway.diagnosis.find_cause import find_values
from headway.diagnosis.record import Diagnosis, ExitStatus
from headway.diagnosis.rulebook import Rule, Rulebook, line_at, supervisor_rules
from headway.messages import find_text

_CRASHES: Final = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGSYS}
_OTHER_SIGNAL: Final = re.compile(r"killed by signal: (?!Killed)")


def classify(report: Mapping[str, Any] | None, status: ExitStatus, log_tail: bytes = b"") -> Diagnosis:
    """Say what class of failure an end was, from the rank's own report, its exit and the end of its output."""
    if report is not None:
        found = _from_report(report)
        is_worker = found.kind in ("worker-died", "host-oom-kill")
        if is_worker and status.is_oom_kill and not _OTHER_SIGNAL.search(str(report.get("text"))):
            # The kernel took the largest process, and that was one of the rank's own loader processes.
            facts = {**found.facts, "signal": "SIGKILL"}
            return _found("host-oom-kill", facts, is_transient=True, evidence=found.evidence)
        if found.kind == "host-oom-kill":  # a word of torch about a signal; the kernel has counted no such end
            return replace(found, kind="worker-died", code="diagnose/worker-died", is_transient=True)
        return found
    if status.signal is not None:
        return _from_signal(status, log_tail)
    if status.code is None:
        return _found("unknown-end", is_transient=True)
    if status.code == 0:
        return _found("early-exit")
    text = log_tail.decode(errors="replace")
    return _match(text) or _found("exited", facts={"exit": status.code}, evidence=_last_line(text))


def _from_report(report: Mapping[str, Any]) -> Diagnosis:
    code = report.get("code")
    kind, text = str(report.get("type", "Exception")), str(report.get("text", ""))
    if isinstance(code, str) and _is_known(code):
        facts = report.get("facts")
        return Diagnosis(
            kind=code,
            code=code,
            facts=facts if isinstance(facts, dict) else {},
            is_transient=report.get("is_transient") is True,
            evidence=text,
        )
    said = f"{kind}: {text}"
    if kind == "BlockingIOError" and "fork" in str(report.get("traceback", "")):
        # Errno 11 also means a lock that is taken; only from a fork is it the limit on processes.
        said = f"fork: {said}"
    facts = {"type": kind, "text": _first_line(text)}
    found = _match(said, facts) or _found("python-exception", facts=facts, evidence=_first_line(said))
    if found.code != "diagnose/python-exception" or not report.get("recipe_file"):
        return found
    place = {"file": report["recipe_file"], "line": report.get("recipe_line")}
    return replace(found, code="diagnose/recipe-exception", facts={**facts, **place})


def _from_signal(status: ExitStatus, log_tail: bytes) -> Diagnosis:
    facts = {"signal": status.signal_name, "text": str(status.signal_name)}
    if status.is_oom_kill and status.signal == signal.SIGKILL:
        return _found("host-oom-kill", facts=facts, is_transient=True, evidence="the kernel's oom_kill count rose")
    if status.signal not in _CRASHES:
        return _found("killed", facts=facts, is_transient=True, evidence=str(status.signal_name))
    text = log_tail.decode(errors="replace")
    if status.signal == signal.SIGILL:
        return _found("illegal-instruction", facts=facts, evidence=_crash_line(text) or str(status.signal_name))
    # An abort is often the runtime's way of saying something it has just printed.
    named = _match(text) if status.signal in (signal.SIGABRT, signal.SIGBUS) else None
    if named is not None and named.kind != "crashed":
        return named
    return _found("crashed", facts=facts, is_transient=True, evidence=_crash_line(text) or str(status.signal_name))


def settle_illegal(found: Diagnosis, steps: int) -> Diagnosis:
    """Return what a refused instruction means after so many steps of this attempt.

    In the first step it is the processor's answer to an instruction the libraries have chosen, and every attempt gets
    it. Steps that ran with the same instructions before say it was something else: a crash like any other, worth
    another attempt.
    """
    if found.kind != "illegal-instruction" or steps == 0:
        return found
    facts = {"signal": "SIGILL", "text": "SIGILL"}
    return _found("crashed", facts=facts, is_transient=True, evidence=found.evidence)


def _crash_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if "Fatal Python error" in line), "")


def _match(text: str, facts: Mapping[str, object] | None = None, book: Rulebook | None = None) -> Diagnosis | None:
    """Return what the strongest rule says of a text; of equals the one whose words come first."""
    found = [
        (rule, hit)
        for rule, hit in (book or supervisor_rules()).match(text)
        if _can_judge(rule, text) and rule.code not in ("child-failed", "launcher-ended-ranks", "native-abort")
    ]
    if not found:
        return None
    explained = {code for rule, _ in found for code in rule.explains}
    own = [one for one in found if one[0].code not in explained] or found
    rule, hit = min(own, key=lambda one: (one[0].is_echo, -one[0].weight, one[1].start()))
    line = line_at(text, hit.start()).strip()[:400]
    return Diagnosis(
        kind=rule.kind,
        code=f"diagnose/{rule.code}",
        facts={**find_values(rule, [line, text]), **(facts or {})},
        is_transient=rule.is_transient,
        is_cascade=rule.is_echo or rule.kind == "connection-lost",
        evidence=line,
        category=rule.category,
    )


def _can_judge(rule: Rule, text: str) -> bool:
    """A rule of one framework, or one that needs further words, judges a text only where they are."""
    if rule.frameworks and not any(name in text.lower() for name in rule.frameworks):
        return False
    return rule.needs is None or rule.needs.search(text) is not None


def _found(
    kind: str, facts: Mapping[str, object] | None = None, is_transient: bool = False, evidence: str = ""
) -> Diagnosis:
    return Diagnosis(
        kind=kind, code=f"diagnose/{kind}", facts=facts or {}, is_transient=is_transient, evidence=evidence
    )


def _is_known(code: str) -> bool:
    try:
        find_text(code)
    except (KeyError, ModuleNotFoundError):
        return False
    return True


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:400]


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2][:400]
