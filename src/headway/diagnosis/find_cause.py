"""From all that a log says to the root cause: what names a cause beats what follows from one, the first wins."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final

from headway.diagnosis.log_events import EventReader, Finding, Reading, find_frameworks
from headway.diagnosis.log_lines import Extract, extract
from headway.diagnosis.log_source import readable
from headway.diagnosis.record import Consequence, Diagnosis, Evidence, Remedy, Sureness
from headway.diagnosis.rulebook import Audience, Rule, Rulebook, fill, usable_fixes

_SURVIVED: Final = 20
"""Lines of progress after the last sign of a fault: the program continued."""
_OVERTAKEN: Final = 3
"""Lines of progress between a fault and a later one: the earlier did not end it."""
_LONG_AGO: Final = 400
"""Lines of any kind between them that say the same: ranks that wait for a dead one print nothing."""
_APART: Final = 30
"""Lines between two causes that have nothing to do with each other."""
_SHOWN: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDiagnosis:
    """What a log says about how its program ended."""

    cause: Diagnosis | None
    """None: no failure found."""
    num_lines: int
    num_bytes: int
    survived: tuple[Consequence, ...] = ()
    """Faults after which training continued."""


def diagnose_log(
    file: BinaryIO, book: Rulebook, *, facts: Mapping[str, object] | None = None, audience: Audience = "script"
) -> LogDiagnosis:
    """Return the root cause of a failure from an open log.

    Args:
        file: the log, of any size.
        book: the rules.
        facts: values known otherwise, such as the run's own settings.
        audience: whom the fixes are for.
    """
    words = tuple(word for rule in book.rules.values() for word in rule.words)
    taken = extract(readable(file), words)
    reading = EventReader(book).read(taken.lines())
    return judge(reading, taken, facts or {}, audience)


def judge(reading: Reading, taken: Extract, facts: Mapping[str, object], audience: Audience) -> LogDiagnosis:
    """Return what follows from a reading."""
    holds = _log_search(taken)
    frameworks = find_frameworks(taken)
    known = {code: one for code, one in reading.findings.items() if _applies(one.rule, frameworks, holds)}
    for hit, codes in reading.raised:
        if not any(code in known for code in codes):
            known.setdefault(hit.rule.code, Finding(hit.rule)).add(hit)
    findings = [one for one in known.values() if reading.recovered.get(one.rule.code, -1) <= one.last]
    weights = {one.rule.code: _weight(one, findings, reading) for one in findings}
    ordered = sorted(findings, key=lambda one: (-weights[one.rule.code], one.first))
    if not ordered or _is_survived(ordered, reading, weights):
        survived = tuple(_consequence(one) for one in ordered)
        return LogDiagnosis(cause=None, num_lines=taken.num_lines, num_bytes=taken.num_bytes, survived=survived)
    root, rest = ordered[0], ordered[1:]
    others = _independent(root, rest, weights)
    follow = tuple(_consequence(one) for one in sorted(rest, key=lambda one: one.first) if one not in others)
    cause = _make(root, weights, facts, audience, consequences=follow, others=others, rivals=rest)
    return LogDiagnosis(cause=cause, num_lines=taken.num_lines, num_bytes=taken.num_bytes)


def _log_search(taken: Extract) -> Callable[[Rule], bool]:
    """Return the test whether a log holds what a rule needs."""
    text: list[str] = []

    def holds(rule: Rule) -> bool:
        if rule.needs is None:
            return True
        if not text:
            text.append("\n".join(data.decode("utf-8", "replace") for _, data in taken.regions))
        return rule.needs.search(text[0]) is not None

    return holds


def _applies(rule: Rule, frameworks: set[str], holds: Callable[[Rule], bool]) -> bool:
    return (not rule.frameworks or bool(frameworks & set(rule.frameworks))) and holds(rule)


def _weight(finding: Finding, findings: list[Finding], reading: Reading) -> int:
    """Return how much a finding counts here."""
    rule = finding.rule
    weight = 0 if rule.is_echo else rule.weight
    if _only_ignored(finding):
        weight = 0 if weight > 1 else -1
    explainers = [other for other in findings if other is not finding and not _only_ignored(other)]
    if any(rule.code in other.rule.explains for other in explainers):
        return weight - 10
    later = [other for other in findings if other.last > finding.last and not other.rule.is_echo]
    if any(_is_overtaken(reading, finding.last, other.first) for other in later) or _is_earlier_job(finding, reading):
        weight -= 5
    return weight


def _is_earlier_job(finding: Finding, reading: Reading) -> bool:
    """Say whether it belongs to a job before the last: schedulers append to a file of the same name."""
    last = reading.jobs[-1][0] if reading.jobs else ""
    return any(job != last and place >= finding.last for job, place in reading.jobs)


def _is_overtaken(reading: Reading, start: int, end: int) -> bool:
    return end - start >= _LONG_AGO or _progress_between(reading, start, end) >= _OVERTAKEN


def _progress_between(reading: Reading, start: int, end: int) -> int:
    return bisect_right(reading.progress, end - 1) - bisect_right(reading.progress, start)


def _is_survived(ordered: list[Finding], reading: Reading, weights: Mapping[str, int]) -> bool:
    """Say whether training continued after the last thing that could have ended it."""
    last = max(one.last for one in ordered)
    after = _progress_between(reading, last, reading.num + 1)
    if after >= _SURVIVED or reading.finished > last:
        return True
    return weights[ordered[0].rule.code] < 0 and all(one.rule.is_echo or _only_ignored(one) for one in ordered)


def _only_ignored(finding: Finding) -> bool:
    return all(hit.is_ignored for hit in finding.hits)


def _independent(root: Finding, rest: list[Finding], weights: Mapping[str, int]) -> list[Finding]:
    """Return further causes: named as surely as the root, of another kind, and far from it."""
    return [
        one
        for one in rest
        if weights[one.rule.code] >= 3
        and one.rule.category != root.rule.category
        and one.rule.code not in root.rule.explains
        and (abs(one.first - root.first) > _APART or bool(one.ranks and root.ranks and not one.ranks & root.ranks))
    ]


def _make(
    finding: Finding,
    weights: Mapping[str, int],
    known: Mapping[str, object],
    audience: Audience,
    *,
    consequences: tuple[Consequence, ...] = (),
    others: list[Finding] | None = None,
    rivals: list[Finding] | None = None,
) -> Diagnosis:
    rule = finding.rule
    sure, why = _judge_sureness(finding, weights, rivals or [], len(consequences))
    facts = {**known, **find_values(rule, [hit.text for hit in finding.hits])}
    if finding.ranks:
        facts.setdefault("rank", min(finding.ranks))
    return Diagnosis(
        kind=rule.kind,
        code=f"diagnose/{rule.code}",
        facts=facts,
        is_transient=rule.is_transient,
        is_cascade=rule.is_echo,
        evidence=finding.hits[0].line.text.strip()[:_SHOWN],
        category=rule.category,
        sure=sure,
        why=why,
        lines=_evidence(finding),
        consequences=consequences,
        remedies=make_remedies(rule, facts, audience),
        others=tuple(_make(one, weights, known, audience) for one in others or []),
    )


def find_values(rule: Rule, texts: list[str]) -> dict[str, object]:
    """Return the line itself, the exception's type, and what the rule takes out of its evidence."""
    said = texts[0].strip()
    kind, sign, _ = said.partition(":")
    is_type = bool(sign) and kind.replace(".", "").replace("_", "").isalnum()
    facts: dict[str, object] = {"text": said.partition("\n")[0][:_SHOWN], "type": kind if is_type else ""}
    for name, pattern in rule.values.items():
        for text in texts:
            if (hit := pattern.search(text)) is not None and (value := next((one for one in hit.groups() if one), "")):
                facts[name] = value.strip()[:200]
                break
    return facts


def make_remedies(rule: Rule, facts: Mapping[str, object], audience: Audience) -> tuple[Remedy, ...]:
    """Return what to do, values filled in, cheapest first."""
    return tuple(
        Remedy(
            en=fill(fix.en, facts),
            zh=fill(fix.zh, facts),
            command=fill(fix.command, facts),
            setting=fill(fix.setting, facts),
        )
        for fix in usable_fixes(rule, facts, audience)
    )


def _evidence(finding: Finding) -> tuple[Evidence, ...]:
    seen: dict[str, Evidence] = {}
    for hit in finding.hits:
        text = hit.line.text.strip()[:_SHOWN]
        if text not in seen:
            seen[text] = Evidence(number=hit.line.number, text=text, rank=hit.line.rank)
    lines = list(seen.values())[:3]
    first = lines[0]
    lines[0] = Evidence(number=first.number, text=first.text, rank=first.rank, times=finding.num)
    return tuple(lines)


def _consequence(finding: Finding) -> Consequence:
    return Consequence(
        code=f"diagnose/{finding.rule.code}", category=finding.rule.category, evidence=_evidence(finding)[0]
    )


def _judge_sureness(
    finding: Finding, weights: Mapping[str, int], rivals: list[Finding], num_consequences: int
) -> tuple[Sureness, tuple[str, ...]]:
    weight = weights[finding.rule.code]
    contested = [
        one for one in rivals if weights[one.rule.code] >= weight and one.rule.category != finding.rule.category
    ]
    why = ["ui/why-named" if weight >= 3 else "ui/why-follows" if weight <= 0 else "ui/why-usual"]
    if num_consequences:
        why.append("ui/why-explains")
    if contested:
        why.append("ui/why-contested")
    if weight >= 4 or (weight == 3 and not contested):
        return "certain", tuple(why)
    return ("likely" if weight >= 2 else "possible"), tuple(why)
