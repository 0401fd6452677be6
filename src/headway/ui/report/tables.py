"""The tables of the report, as rows of text and markup."""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from headway.config import flatten
from headway.messages import LANGUAGES, Language, say
from headway.planner import PlanRow, origin_text, value_text
from headway.redact import redact
from headway.secret import name_of_secret
from headway.telemetry import Event, number
from headway.ui.findings import finding_command, finding_text
from headway.ui.report.both_languages import both, both_list, both_or_plain, both_said
from headway.ui.report.gather import Facts
from headway.ui.text import clean_text
from headway.units import ABSENT, count, duration, size

_MAX_EVENTS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRow:
    """One value of the config."""

    key: str
    value: str
    origin: Markup
    is_default: bool


def compare_plan(facts: Facts) -> list[tuple[Markup, str, str]]:
    """Return quantity, planned, happened."""
    plan, state, steps = facts.plan, facts.state, facts.steps
    tokens = plan.get("tokens_per_sample")
    forecast = plan.get("forecast") or {}
    rows = [
        ("steps", count(plan.get("total_steps")), count(state.step)),
        ("samples", count(plan.get("total_samples")), count(state.samples)),
    ]
    if tokens:
        planned, done = plan.get("total_samples"), state.samples
        rows.append(("tokens", count(planned * tokens if planned else None), count(done * tokens if done else None)))
    rows.append(("ranks", count(plan.get("world_size")), count(_last_world_size(facts.events))))
    rows.append(("params", count(number_or_none(forecast.get("params"))), count(_params(facts.events))))
    rows.append(("redone", "0", count(facts.redone_steps)))
    rows.append(("attempts", "1", count(state.attempts)))
    step_s = number_or_none(forecast.get("step_s"))
    own_s = steps.own_s[steps.weight > 0] if steps is not None else np.zeros(0)
    took_s = float(np.nanmedian(own_s)) if np.isfinite(own_s).any() else None
    rows.append(("step-time", duration(step_s), graded(duration(took_s), step_s, took_s)))
    whole_s = step_s * plan["total_steps"] if step_s is not None and plan.get("total_steps") else None
    rows.append(("wall", duration(whole_s), duration(facts.wall_s)))
    peak = max((float(np.nanmax(v)) for v in steps.memory.values()), default=None) if steps else None
    # On a GPU the ranks tell what their tensors held, on a CPU what the whole process did.
    held = forecast.get("allocated_bytes" if plan.get("device") == "cuda" else "used_bytes")
    rows.append(("memory", size(number_or_none(held)), graded(size(peak), number_or_none(held), peak)))
    return [(both(f"report/row-{key}", memory=facts.memory), planned, done) for key, planned, done in rows]


def graded(text: str, planned: float | None, happened: float | None) -> str:
    """Return what happened, and by how much the plan was off."""
    if not planned or not happened:
        return text
    return f"{text} ({(planned - happened) / happened:+.0%})"


def list_measures(facts: Facts) -> list[tuple[str, str, Markup]]:
    """Return what the last validation and the last trial found, each beside the baselines of its name."""
    baselines: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for event in facts.events:
        if event.get("kind") == "baseline":
            baselines.update(event.get("measures") or {})
        elif event.get("kind") == "trial":
            found.update(event.get("measures") or {})
    found = {**(facts.validations[-1]["measures"] if facts.validations else {}), **found}
    rows = []
    for name, value in found.items():
        beside = {key.removesuffix(f"_{name}"): one for key, one in baselines.items() if key.endswith(f"_{name}")}
        words = both_list(f"{clean_text(key)} {number(one):.4g}" for key, one in beside.items())
        rows.append((clean_text(name), f"{number(value):.4g}", words))
    return rows


def list_beside(facts: Facts) -> list[tuple[str, Markup, str, Markup]]:
    """Return name, what differs, best measure and the difference to this run, for runs with other settings."""
    rows = []
    for one in facts.beside:
        best, gain = one.state.best, one.gain(facts.beside[0])
        words = both_list(f"{key}={value}" for key, value in one.settings.items())
        is_this = one is facts.beside[0]
        if is_this or math.isnan(gain):
            told = both("report/beside-this") if is_this else Markup("–")
        else:
            code = "ui/compare-better" if gain > 0 else "ui/compare-worse" if gain < 0 else "ui/compare-equal"
            told = both(code, gap=f"{abs(gain):.4g}")
        value = f"{clean_text(best.name)} {best.value:.4g}" if best else ABSENT
        rows.append((clean_text(one.state.name), Markup("{}").format(clean_text(words)), value, told))
    return rows


def number_or_none(value: Any) -> float | None:
    """Return a number, or None for anything that is none."""
    found = number(value)
    return None if math.isnan(found) else found


def _last_world_size(events: list[Event]) -> float | None:
    found = [event.get("world_size") for event in events if event.get("kind") == "attempt_started"]
    return number_or_none(found[-1]) if found else None


def _params(events: list[Event]) -> float | None:
    """Return the weights the ranks have counted."""
    found = [event.get("params") for event in events if event.get("kind") == "training_started"]
    return number_or_none(found[-1]) if found else None


def list_plan(facts: Facts) -> list[tuple[Markup, Markup, Markup]]:
    """Return the plan's own rows: quantity, value, where it came from."""
    rows = [row for row in facts.plan.get("rows") or () if isinstance(row, dict)]
    return [
        (
            both_or_plain(f"plan/row-{row.get('key')}", str(row.get("key"))),
            _plan_words(row, "value", value_text),
            _plan_words(row, "origin", origin_text),
        )
        for row in rows
    ]


def _plan_words(row: dict[str, Any], name: str, tell: Callable[[PlanRow, Language], str]) -> Markup:
    """Return a row's value or origin in both languages; a plan of another version keeps the plain text it stored."""
    texts = {key: str(row.get(key)) for key in ("key", "value", "origin")}
    code, given = str(row.get(f"{name}_code") or ""), row.get("facts")
    words = {str(key): str(value) for key, value in given.items()} if isinstance(given, dict) else {}
    if code and not code.startswith("plan/"):
        return Markup("{}").format(texts[name])
    codes = {"value": "", "origin": "", name: code}
    record = PlanRow(**texts, value_code=codes["value"], origin_code=codes["origin"], facts=words)
    try:
        return both_said({lang: tell(record, lang) for lang in LANGUAGES})
    except (KeyError, ValueError, IndexError):
        return Markup("{}").format(texts[name])


def list_checkpoints(facts: Facts) -> list[dict[str, Any]]:
    """Return the committed checkpoints with what validation said about their step."""
    best = facts.state.best
    measures = {event["step"]: event["measures"] for event in facts.validations}
    return [
        {
            "step": saved.step,
            "after": duration(saved.t - (facts.state.started or saved.t)),
            "size": size(saved.num_bytes),
            "stall": duration(number_or_none(saved.stall_s)),
            "write": duration(number_or_none(saved.write_s)),
            "measures": both_list(f"{k} {number(v):.4g}" for k, v in measures.get(saved.step, {}).items()) or ABSENT,
            "is_best": best is not None and best.step == saved.step,
            "is_there": saved.is_there,
        }
        for saved in facts.state.checkpoints
    ]


def list_config(facts: Facts) -> list[ConfigRow]:
    """Return every value of the config with its origin."""
    return [
        ConfigRow(
            key=key,
            value=hide(key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)),
            origin=_plan_words({"origin": facts.origins.get(key, "default")}, "origin", origin_text),
            is_default=str(facts.origins.get(key, "default")) == "default",
        )
        for key, value in facts.config.items()
    ]


def hide(key: str, value: str) -> str:
    """Return a setting as it may be shown: a secret by its name or by its look is not."""
    return "…" if name_of_secret(key.rpartition(".")[2]) and value not in ("null", "") else redact(value)


def list_machine(facts: Facts) -> list[tuple[str, str]]:
    """Return the machine's readings; bytes as sizes, what nobody could read left out."""
    shown = flatten({key: value for key, value in facts.machine.items() if key not in ("schema", "findings", "gpus")})
    rows = [(key, _reading(key, value)) for key, value in shown.items() if value not in (None, "", [], {})]
    for gpu in facts.machine.get("gpus") or ():
        if isinstance(gpu, dict):
            memory = size(number_or_none(gpu.get("total_bytes")))
            rows.append((f"gpu {gpu.get('index')}", f"{gpu.get('name') or ABSENT}, {memory}"))
    return rows


def _reading(key: str, value: Any) -> str:
    if key.endswith("_bytes"):
        return size(number_or_none(value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def list_incidents(facts: Facts) -> list[dict[str, Any]]:
    """Return what went wrong, in order, and what was done about it."""
    start = facts.state.started or 0.0
    return [
        {
            "after": duration(max(0.0, number(event.get("t")) - start)),
            "attempt": event.get("attempt"),
            "rank": event.get("rank"),
            "class": event.get("class"),
            "text": redact(str(event.get("text") or event.get("what") or event.get("why") or "")),
            "action": event.get("action") or event.get("policy") or "",
            "traceback": redact(str(event.get("traceback") or "")),
        }
        for event in facts.events
        if event.get("kind") in ("incident", "guard", "checkpoint_failed")
    ]


def list_warnings(facts: Facts) -> list[Markup]:
    """Return the warnings, in words where this version has them."""
    over = {_identity(event): event for event in facts.events if event.get("kind") == "finding_over"}
    rows = []
    for event in facts.events:
        if event.get("kind") == "warning":
            rows.append(_warning(str(event.get("code")), event.get("facts")))
        elif event.get("kind") == "finding":
            rows.append(_found(event, over.get(_identity(event))))
    return rows


def _identity(event: Event) -> tuple[str, str]:
    return str(event.get("code")), str(event.get("key"))


def _found(event: Event, over: Event | None) -> Markup:
    """Return a finding with what it has cost, once it is over, or what it costs if nobody acts, and its cure."""
    cost_s = number(over.get("cost_s")) if over is not None else 0.0
    shown = event if over is None else {key: event[key] for key in event if key != "ignored_s"}
    texts = {}
    for lang in LANGUAGES:
        cost = f" ({say('watch/cost', lang, cost=duration(cost_s))})" if cost_s > 0 else ""
        texts[lang] = f"{finding_text(shown, lang)}{cost}"
    command = finding_command(event)
    return both_said(texts) + (Markup("<pre>{}</pre>").format(command) if command else Markup(""))


def _warning(code: str, facts: Any) -> Markup:
    known = {str(key): value for key, value in facts.items()} if isinstance(facts, dict) else {}
    words = json.dumps(known, ensure_ascii=False, default=str) if known else ""
    return both_or_plain(code, f"{code} {words}", **{k: v for k, v in known.items() if k not in ("code", "plain")})


def list_events(facts: Facts) -> list[tuple[str, str, str]]:
    """Return time, kind and facts of the events; of very many, the first and the last."""
    start = facts.state.started or 0.0
    events = facts.events
    if len(events) > _MAX_EVENTS:
        events = events[: _MAX_EVENTS // 2] + events[-_MAX_EVENTS // 2 :]
    return [
        (
            duration(max(0.0, number(event.get("t")) - start)),
            str(event.get("kind")),
            redact(
                json.dumps(
                    {k: v for k, v in event.items() if k not in ("seq", "t", "kind", "traceback")}, ensure_ascii=False
                )
            ),
        )
        for event in events
    ]


def describe_command(facts: Facts) -> dict[str, str]:
    """Return the command line and the commit it ran from."""
    argv = facts.command.get("argv") or next(
        (event.get("command") for event in facts.events if event.get("kind") == "run_started"), None
    )
    line = shlex.join(map(str, argv)) if isinstance(argv, list) else str(argv or ABSENT)
    git = facts.command.get("git")
    source = git if isinstance(git, dict) else facts.command
    commit, diff = source.get("commit"), source.get("diff")
    return {
        "line": redact(line),
        "commit": str(commit or ABSENT),
        "diff": redact(str(diff or "")),
        "cwd": str(facts.command.get("cwd") or ""),
    }


def when(unix: float | None) -> str:
    """Return a time of day where the report is written."""
    try:
        return ABSENT if unix is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(unix))
    except (OverflowError, ValueError, OSError):  # a time that no calendar has
        return ABSENT
