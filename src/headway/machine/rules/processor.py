"""What follows for a run from what the processor really computes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace

from headway.machine.cpu import CpuAnswers
from headway.machine.cpu_child import PRECISIONS
from headway.machine.other import with_findings
from headway.machine.record import Finding, MachineReport


def with_cpu(
    report: MachineReport, found: CpuAnswers | None, precision: str = "auto", *, is_asked: bool = False
) -> MachineReport:
    """Return the report of a machine for a run on its CPU; `auto` is fp32 there."""
    if found is None:
        return report
    report = replace(report, cpu_refused=dict(found.failed), cpu_settings=dict(found.settings))
    return with_findings(report, judge_cpu(found, precision, is_asked=is_asked))


def judge_cpu(found: CpuAnswers, precision: str = "auto", *, is_asked: bool = False) -> Iterator[Finding]:
    """Yield what is worth saying; `is_asked`: also that all is well."""
    wanted = "fp32" if precision == "auto" else precision
    if found.own:
        facts = {"values": words(found.own), "cases": _list(found.failed), "fix": _typed(found)}
        is_hit = any(case.startswith((wanted, "import")) for case in found.failed)
        yield Finding(code="machine/cpu-own-value", level="stop" if is_hit else "warn", facts=facts)
        return
    if found.settings:
        facts = {"cases": _list(found.failed), "settings": words(found.settings)}
        yield Finding(code="machine/cpu-limited", level="note", facts=facts)
    if found.left and not found.works:
        yield Finding(code="machine/cpu-computes-nothing", level="stop", facts={"cases": _list(found.left)})
        return
    for name in PRECISIONS:
        cases = {case: answer for case, answer in found.left.items() if case.startswith(name)}
        if cases:
            facts = {"precision": name, "cases": _list(cases), "other": found.works[0], "works": ", ".join(found.works)}
            yield Finding(code="machine/cpu-no-precision", level="stop" if name == wanted else "warn", facts=facts)
    if is_asked and not found.failed:
        yield Finding(code="machine/cpu-computes", level="ok", facts={"list": ", ".join(found.works) or "n/a"})


def words(settings: Mapping[str, str]) -> str:
    """Return settings as a shell takes them."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())


def _typed(found: CpuAnswers) -> str:
    """Return the line that puts a value which works in the place of the user's own."""
    gone = [name for name in found.own if name not in found.advice]
    parts = [f"unset {' '.join(gone)}"] if gone else []
    return " && ".join([*parts, f"export {words(found.advice)}"] if found.advice else parts)


def _list(cases: Mapping[str, str]) -> str:
    """Return cases by what became of them: `bf16 linear, bf16 attention: SIGILL`."""
    ends = dict.fromkeys(cases.values())
    return "; ".join(f"{', '.join(case for case in cases if cases[case] == end)}: {end}" for end in ends)
