"""The last thing on the screen of a failed run: what happened, what to do, the first failing rank's traceback."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from headway.launch import Incident, Outcome, diagnosis_text
from headway.messages import Language, hint, say
from headway.redact import redact
from headway.ui.retype import paste_ready
from headway.units import ABSENT

_UNSAFE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_TRACEBACK_LINES: Final = 60


def failure_text(outcome: Outcome, lang: Language | None = None, *, run: str = "") -> list[str]:
    """Return the lines to print for an outcome that is not `done`, the traceback last; control characters are shown.

    Args:
        run: the run's name or directory, for what to type about it.
    """
    incident = outcome.incident
    if incident is None:
        lines = [
            f"{say(outcome.why, lang, **outcome.facts)} [{outcome.why}]",
            _hint(outcome.why, {"run": run, **outcome.facts}, lang),
        ]
        return [_safe(line) for line in lines if line]
    lines = [_headline(incident, lang), _advice(incident, run, lang)]
    if outcome.why in ("launch/no-progress", "launch/foreign-no-progress"):
        lines.insert(0, say(outcome.why, lang, **outcome.facts) + f" [{outcome.why}]")
        lines.append(_hint(outcome.why, {"run": run, **outcome.facts}, lang))
    if incident.diagnosis.kind != incident.diagnosis.code:  # a headway error says all there is to say in its own words
        lines += incident.traceback.splitlines()[-_TRACEBACK_LINES:]
    return [_safe(line) for line in lines if line]


def _headline(incident: Incident, lang: Language | None) -> str:
    text = diagnosis_text(incident.diagnosis, lang)
    code = incident.diagnosis.code
    # A hang's own text names the rank, and the signal that ended it was ours.
    if incident.rank is None or incident.diagnosis.is_hang:
        return f"{text} [{code}]"
    where = say("launch/rank-failed", lang, rank=incident.rank, step=incident.step, how=_how(incident, lang), text=text)
    return f"{where} [{code}]"


def _how(incident: Incident, lang: Language | None) -> str:
    status = incident.status
    if status.signal_name is not None:
        return str(status.signal_name)
    return say("launch/exit-code", lang, exit=ABSENT if status.code is None else status.code)


def _advice(incident: Incident, run: str, lang: Language | None) -> str:
    return _hint(incident.diagnosis.code, {"run": run, **incident.diagnosis.facts}, lang)


def _hint(code: str, facts: Mapping[str, object], lang: Language | None) -> str:
    try:
        text = hint(code, lang, **facts)
    except (KeyError, ModuleNotFoundError):
        return ""
    return say("launch/hint", lang, text=paste_ready(text)) if text else ""


def _safe(line: str) -> str:
    return _UNSAFE.sub(lambda found: f"\\x{ord(found[0]):02x}", redact(line))
