"""The rule table: the first rule whose words are found decides. Most exact first."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from headway.diagnosis.record import Diagnosis, ExitStatus
from headway.messages import find_text

_CRASHES: Final = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGSYS}


_OTHER_SIGNAL: Final = re.compile(r"killed by signal: (?!Killed)")


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    pattern: re.Pattern[str]
    is_transient: bool = False
    is_cascade: bool = False


def _rule(kind: str, *words: str, is_transient: bool = False, is_cascade: bool = False) -> _Rule:
    return _Rule(kind, re.compile("|".join(words)), is_transient, is_cascade)


_RULES: Final = (
    _rule("device-out-of-memory", r"\bOutOfMemoryError\b", r"CUDA out of memory", r"CUBLAS_STATUS_ALLOC_FAILED"),
    _rule("shared-memory-full", r"insufficient shared memory", r"unable to (?:open|allocate) shared memory"),
    _rule("disk-full", r"\[Errno 28\]", r"No space left on device", r"\[Errno 122\]", r"Disk quota exceeded"),
    _rule(
        "process-limit",
        r"\[Errno 24\]",
        r"Too many open files",
        r"can't start new thread",
        r"(?:fork|pthread_create|[Tt]hread creation).{0,60}Resource temporarily unavailable",
    ),
    _rule(
        "host-out-of-memory", r"\bMemoryError\b", r"\[Errno 12\]", r"Cannot allocate memory", r"can't allocate memory"
    ),
    _rule("port-in-use", r"\[Errno 98\]", r"Address already in use", r"EADDRINUSE", is_transient=True),
    # The words of whoever has seen another process end: a rank's own signal is known without them.
    _rule("illegal-instruction", r"Signal 4 \(SIGILL\)", r"(?:by signal|Fatal Python error): Illegal instruction"),
    _rule("worker-died", r"DataLoader worker \(pid", r"DataLoader worker exited", is_transient=True),
    # Python's own sockets: a data server, a tracker, a database. Ranks meet through C++, whose words are below.
    _rule("server-refused", r"\bConnectionRefusedError\b", r"\[Errno 111\]", is_transient=True),
    _rule(
        "connection-lost",
        r"Connection reset by peer",
        r"Connection closed by (?:remote )?peer",
        r"Connection refused",
        r"Broken pipe",
        r"recvValue failed|sendBytes failed",
        r"ncclRemoteError",
        r"NCCL communicator was aborted",
        r"Watchdog caught collective operation timeout",
        r"DistStoreError|DistNetworkError",
        is_transient=True,
        is_cascade=True,
    ),
    _rule(
        "collective-mismatch",
        r"op\.preamble\.length <= op\.nbytes",
        r"Detected mismatch between collectives",
        r"[Cc]ollective.{0,40}(?:shape|size) mismatch",
        r"mismatch.{0,40}collective",
    ),
    _rule("device-error", r"CUDA error: (?:unspecified launch failure|uncorrectable ECC|an illegal|device-side)"),
    _rule("import-error", r"\b(?:ModuleNotFoundError|ImportError)\b", r"cannot open shared object file"),
    _rule("missing-file", r"\bFileNotFoundError\b", r"\[Errno 2\]"),
)


def classify(report: Mapping[str, Any] | None, status: ExitStatus, log_tail: bytes = b"") -> Diagnosis:
    """Say what class of failure an end was, from the rank's own report, its exit and the end of its output."""
    if report is not None:
        found = _from_report(report)
        if found.kind == "worker-died" and status.is_oom_kill and not _OTHER_SIGNAL.search(str(report.get("text"))):
            # The kernel took the largest process, and that was one of the rank's own loader processes.
            return _found("host-oom-kill", {"signal": "SIGKILL"}, is_transient=True, evidence=found.evidence)
        return found
    if status.signal is not None:
        return _from_signal(status, log_tail)
    if status.code is None:
        return _found("unknown-end", is_transient=True)
    if status.code == 0:
        return _found("early-exit")
    text = log_tail.decode(errors="replace")
    return _match(text, _last_line(text)) or _found("exited", facts={"exit": status.code}, evidence=_last_line(text))


def _from_report(report: Mapping[str, Any]) -> Diagnosis:
    code = report.get("code")
    kind, text = str(report.get("type", "Exception")), str(report.get("text", ""))
    if isinstance(code, str) and _is_known(code):
        facts = report.get("facts")
        return Diagnosis(
            kind=code, code=code, facts=facts if isinstance(facts, dict) else {}, is_transient=False, evidence=text
        )
    said = f"{kind}: {text}"
    if kind == "BlockingIOError" and "fork" in str(report.get("traceback", "")):
        # Errno 11 also means a lock that is taken; only from a fork is it the limit on processes.
        said = f"fork: {said}"
    facts = {"type": kind, "text": _first_line(text)}
    found = _match(said, said, facts) or _found("python-exception", facts=facts, evidence=_first_line(said))
    if found.kind != "python-exception" or not report.get("recipe_file"):
        return found
    place = {"file": report["recipe_file"], "line": report.get("recipe_line")}
    return replace(found, code="diagnose/recipe-exception", facts={**facts, **place})


def _from_signal(status: ExitStatus, log_tail: bytes) -> Diagnosis:
    facts = {"signal": status.signal_name}
    if status.is_oom_kill and status.signal == signal.SIGKILL:
        return _found("host-oom-kill", facts=facts, is_transient=True, evidence="the kernel's oom_kill count rose")
    if status.signal not in _CRASHES:
        return _found("killed", facts=facts, is_transient=True, evidence=str(status.signal_name))
    text = log_tail.decode(errors="replace")
    if status.signal == signal.SIGILL:
        return _found("illegal-instruction", facts=facts, evidence=_crash_line(text) or str(status.signal_name))
    # An abort is often the runtime's way of saying something it has just printed.
    if status.signal in (signal.SIGABRT, signal.SIGBUS) and (named := _match(text, _last_line(text))):
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
    return _found("crashed", facts={"signal": "SIGILL"}, is_transient=True, evidence=found.evidence)


def _crash_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if "Fatal Python error" in line), "")


def _match(text: str, evidence: str, facts: Mapping[str, object] | None = None) -> Diagnosis | None:
    for rule in _RULES:
        hit = rule.pattern.search(text)
        if hit:
            line = next((line for line in text.splitlines() if rule.pattern.search(line)), evidence)
            named = {"type": "", "text": line.strip()[:400], **(facts or {})}
            return Diagnosis(
                kind=rule.kind,
                code=f"diagnose/{rule.kind}",
                facts=named,
                is_transient=rule.is_transient,
                is_cascade=rule.is_cascade,
                evidence=line.strip()[:400],
            )
    return None


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
