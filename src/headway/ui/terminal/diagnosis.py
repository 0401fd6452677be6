"""A diagnosis on the terminal: the cause, its proof, what only follows from it, and what to do, cheapest first."""

from __future__ import annotations

from collections.abc import Sequence

from headway.diagnosis import Consequence, Diagnosis, Evidence, LogDiagnosis, Remedy, Rule
from headway.messages import find_text, language, say
from headway.redact import redact
from headway.ui.text import clean_text

_MOST = 5
"""Consequences shown; the JSON has all."""


def diagnosis_lines(found: LogDiagnosis, text: str) -> list[str]:
    """Return what to print about a log or run.

    Args:
        found: the answer.
        text: the cause in words; unused where there is none.
    """
    if found.cause is None:
        lines = [say("ui/no-failure", lines=f"{found.num_lines:,}")]
        lines += [say("ui/survived", line=_line(one.evidence)) for one in found.survived[:_MOST]]
    else:
        lines = _cause_lines(found.cause, text)
    return [clean_text(redact(line)) for line in lines]


def short_lines(remedies: Sequence[Remedy]) -> list[str]:
    """Return the fixes as a numbered list, each command on a line of its own."""
    lines = []
    for number, one in enumerate(remedies, 1):
        lines.append(f"  {number}. {one.zh if language() == 'zh' else one.en}")
        lines += [f"     {one.command}"] if one.command else []
    return [clean_text(redact(line)) for line in lines]


def _cause_lines(cause: Diagnosis, text: str) -> list[str]:
    between = "；" if language() == "zh" else "; "
    why = between.join(say(code) for code in cause.why)
    lines = [say("ui/root-cause", text=text, code=cause.code)]
    lines.append(say("ui/how-sure", sure=say(f"ui/sure-{cause.sure}"), why=why))
    if any(one.number for one in cause.lines):
        lines += ["", say("ui/evidence"), *(f"  {_line(one)}" for one in cause.lines)]
    if cause.consequences:
        lines += ["", say("ui/consequences")]
        lines += [f"  {_line(one.evidence)} [{one.code}]" for one in cause.consequences[:_MOST]]
        rest = len(cause.consequences) - _MOST
        lines += [say("ui/and-more", num=rest)] if rest > 0 else []
    if cause.remedies:
        lines += ["", say("ui/what-to-do"), *short_lines(cause.remedies)]
    for other in cause.others:
        lines += ["", say("ui/also-found", text=other.evidence, code=other.code)]
        lines += [f"  {_line(one)}" for one in other.lines[:1]]
        lines += short_lines(other.remedies[:2])
    return lines


def _line(evidence: Evidence) -> str:
    """Return `line 12 (rank 3, 8 times): text`."""
    notes = [] if evidence.rank is None else [f"rank {evidence.rank}"]
    notes += [say("ui/times", num=f"{evidence.times:,}")] if evidence.times > 1 else []
    note = ("（" + "，".join(notes) + "）" if language() == "zh" else f" ({', '.join(notes)})") if notes else ""
    return say("ui/log-line", number=evidence.number, note=note, text=evidence.text[:240])


def rule_lines(rule: Rule) -> list[str]:
    """Return what the error book says about one finding."""
    shown = rule.text().replace("{text}", "…").replace("{type}: ", "").replace("{type}：", "")
    lines = [f"diagnose/{rule.code}", f"  {shown}", say("ui/explain-category", category=rule.category)]
    lines.append(say("ui/explain-retry-yes" if rule.is_transient else "ui/explain-retry-no"))
    if rule.explains:
        lines.append(say("ui/explain-explains", codes=rule.explains))
    for audience in ("headway", "script"):
        fixes = [fix for fix in rule.fixes if fix.audience in ("any", audience)]
        if fixes:
            lines += ["", say(f"ui/explain-{audience}")]
            lines += short_lines([Remedy(en=one.en, zh=one.zh, command=one.command) for one in fixes])
    if rule.reproducer:
        lines += ["", say("ui/explain-reproducer", path=rule.reproducer)]
    return lines


def message_lines(code: str) -> list[str]:
    """Return what a message code stands for."""
    text = find_text(code)
    words, advice = (text.zh, text.zh_hint) if language() == "zh" else (text.en, text.en_hint)
    return [code, f"  {words}", *([f"  {say('launch/hint', text=advice)}"] if advice else [])]


def consequence_json(one: Consequence) -> dict[str, object]:
    """Return the plain form of a fault that was survived."""
    return {"code": one.code, "line": one.evidence.number, "text": redact(one.evidence.text)}
