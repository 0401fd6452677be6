"""An alert in words: what happened, what to do, where the run is. Read from the run directory when it is sent."""

from __future__ import annotations

import math
import shlex
import socket
from collections.abc import Mapping
from typing import Any, Final

from headway.bridges.message import Level, Message, make_message
from headway.bridges.rules import Alert
from headway.diagnosis import Diagnosis, diagnose_run, load_rules, user_rules_folder
from headway.messages import fill, hint, language, say
from headway.telemetry import Measure, RunDir, RunState, run_state, whole

_LEVELS: Final[Mapping[str, Level]] = {"finished": "success", "failed": "failure", "lost": "failure", "stopped": "info"}
_FIXES: Final = 3
_LOG_BYTES: Final = 64 << 20
"""A longer log takes longer to read than the end of a run may wait."""


def compose(run: RunDir, alert: Alert, *, num_held: int = 0) -> Message:
    """Return the message of an alert, in the language in use."""
    state = run_state(run)
    lines = [*filter(None, _what(run, alert, state)), "", *_where(run, state)]
    if num_held:
        lines.append(say("alert/held", num=num_held))
    record = {"code": alert.code, "state": state.state, "step": state.step, "path": str(run.root.absolute())}
    facts = {name: str(fact) for name, fact in alert.facts.items()}
    level = _LEVELS.get(alert.kind, "warning")
    return make_message(alert.kind, level, run=run.name, lines=lines, facts=facts, **record)


def _what(run: RunDir, alert: Alert, state: RunState) -> list[str]:
    match alert.kind:
        case "finished":
            return [say("alert/finished", steps=whole(alert.facts.get("steps")) or state.step), *_results(state)]
        case "failed":
            return _failure(run, alert)
        case "lost":
            resume = f"headway resume {shlex.quote(run.name)}"
            return [say("alert/lost"), say("alert/what-to-do"), f"  {resume}", *_results(state)]
    return [_said(alert.code, alert.facts), _hint(alert.code, {"run": run.name, **alert.facts})]


def _failure(run: RunDir, alert: Alert) -> list[str]:
    """Return the cause and what to do, as `headway diagnose` tells them."""
    cause = _diagnose(run)
    if cause is None:
        lines = [_said(alert.code, alert.facts), _hint(alert.code, {"run": run.name, **alert.facts})]
    else:
        lines = [f"{_cause(cause)} [{cause.code}]"]
        if alert.code in ("launch/no-progress", "launch/foreign-no-progress"):
            lines.insert(0, _said(alert.code, alert.facts))
        fixes = [one.zh if language() == "zh" else one.en for one in cause.remedies[:_FIXES]]
        commands = [one.command for one in cause.remedies[:_FIXES]]
        told = [
            line
            for number, (text, command) in enumerate(zip(fixes, commands, strict=True), 1)
            for line in (f"{number}. {text}", f"   {command}" if command else "")
        ]
        lines += [say("alert/what-to-do"), *told] if told else [_hint(cause.code, {"run": run.name, **cause.facts})]
    return [*lines, f"headway diagnose {shlex.quote(run.name)}"]


def _diagnose(run: RunDir) -> Diagnosis | None:
    if run.log.is_file() and run.log.stat().st_size > _LOG_BYTES:
        return None
    try:
        return diagnose_run(run, load_rules(user_rules_folder())).cause
    except Exception:  # border: a rule of the user's own that is broken; the message must go out
        return None


def _cause(cause: Diagnosis) -> str:
    book = load_rules(user_rules_folder())
    rule = book.rules.get(cause.code.removeprefix("diagnose/"))
    if rule is None or "signal" in cause.facts:
        return _said(cause.code, cause.facts) or cause.evidence
    return fill(rule.text(language()).replace("{text}", "{text:said}"), dict(cause.facts), language())


def _results(state: RunState) -> list[str]:
    found = [("alert/best", state.best)] if state.best else [("alert/last", state.validation)]
    lines = [say(code, **_measured(one)) for code, one in found if one is not None]
    if state.loss is not None and math.isfinite(state.loss):
        lines.append(f"loss = {state.loss:.4f}")
    return lines


def _measured(one: Measure) -> dict[str, Any]:
    return {"name": one.name, "value": f"{one.value:.4f}", "step": one.step}


def _where(run: RunDir, state: RunState) -> list[str]:
    host = socket.gethostname()
    if state.total_steps:
        place = say("alert/place-of", step=state.step, total=state.total_steps, host=host)
    else:
        place = say("alert/place", step=f"{state.step:,}", host=host)
    return [place, str(run.root.absolute())]


def _said(code: str, facts: Mapping[str, Any]) -> str:
    """Return a text; one that lacks a fact, or is of another version, gives way to what the event says itself."""
    try:
        return say(code, **facts)
    except (KeyError, ModuleNotFoundError, ValueError):
        return str(facts.get("text") or code)


def _hint(code: str, facts: Mapping[str, Any]) -> str:
    try:
        return hint(code, **facts)
    except (KeyError, ModuleNotFoundError, ValueError):
        return ""
