"""What a launch line means and what was found in it, as lines of text."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence

from headway.adopt import Finding, Launch, Meaning, hide_secrets
from headway.messages import say
from headway.ui.retype import paste_ready

_VERDICTS = {
    "kept": "adopt/verdict-kept",
    "no_effect": "adopt/verdict-no-effect",
    "harmful": "adopt/verdict-harmful",
    "contradictory": "adopt/verdict-contradictory",
}


def meaning_lines(meaning: Meaning, findings: Sequence[Finding]) -> list[str]:
    """Return what a person reads."""
    lines: list[str] = []
    if meaning.launch is None:
        lines.append(say("adopt/read-none"))
    else:
        lines += _launch_lines(meaning.launch)
    for one in meaning.more:
        lines.append(say("adopt/read-more", line=one.line, launcher=one.launcher, entry=_entry(one)))
    if meaning.unresolved:
        lines.append(say("adopt/read-open", names=", ".join(meaning.unresolved)))
    for finding in findings:
        verdict = say(_VERDICTS[finding.verdict])
        facts = {"line": finding.line, "verdict": verdict, "subject": finding.subject, "text": finding.text()}
        lines.append(say("adopt/read-finding", **facts))
        lines += [say("adopt/read-advice", text=line) for line in paste_ready(finding.hint()).splitlines()]
    counts = Counter(one.verdict for one in findings)
    lines.append(say("adopt/read-findings", **{verdict: counts[verdict] for verdict in _VERDICTS}))  # type: ignore[index]
    return lines


def _launch_lines(launch: Launch) -> list[str]:
    shown = hide_secrets(launch).to_json()
    lines = [say("adopt/read-launch", line=launch.line, launcher=launch.launcher, entry=_entry(launch))]
    for name, value in shown.items():
        is_empty = value in ({}, []) and name != "cuda_visible_devices"
        if name in ("launcher", "entry") or value is None or is_empty:
            continue
        text = shlex.join(value) if name == "args" else json.dumps(value, ensure_ascii=False)
        lines.append(say("adopt/read-field", name=name, value=text))
    return lines


def _entry(launch: Launch) -> str:
    return launch.entry.name if launch.entry is not None else "?"
