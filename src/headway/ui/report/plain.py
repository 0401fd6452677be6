"""The report as Markdown, and as one JSON object, for people and programs that do not open pages."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from markupsafe import Markup

from headway.messages import Language, language, say
from headway.telemetry import plain
from headway.ui.report import tables
from headway.ui.report.devices import list_devices
from headway.ui.report.gather import Facts
from headway.ui.report.thin import thin
from headway.ui.report.verdict import find_gains, write_verdict
from headway.units import size

_OTHER: Final[dict[Language, str]] = {"en": "zh", "zh": "en"}
_POINTS: Final = 1000
_LOG_LINES: Final = 20


def words_of(text: object, lang: Language) -> str:
    """Return a text of a page in one language, without its markup."""
    if not isinstance(text, Markup):
        return str(text)
    other = _OTHER[lang]
    own = re.sub(rf'<span lang="{other}">.*?</span>', "", str(text), flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " " if "<pre" in own else "", own)).strip()


def render_markdown(facts: Facts) -> str:
    """Return the report as Markdown in the language that is spoken."""
    lang = language()
    state = facts.state
    told = " · ".join(words_of(one, lang) for one in write_verdict(facts))
    parts = [f"# {_cell(state.name)}", _cell(told), f"{tables.when(state.started)} – {tables.when(state.ended)}"]
    parts += _table(
        "report/measures",
        ["", say("report/value", lang), say("report/baselines", lang)],
        tables.list_measures(facts),
        lang,
    )
    heads = ["", say("report/planned", lang), say("report/happened", lang)]
    parts += _table("report/planned-happened", heads, tables.compare_plan(facts), lang)
    incidents = [
        (one["after"], one["class"] or "", "" if one["rank"] is None else one["rank"], one["text"], one["action"] or "")
        for one in tables.list_incidents(facts)
    ]
    parts += _table("report/incidents", [say("report/after", lang), "", "rank", "", ""], incidents, lang)
    warnings = [_cell(words_of(one, lang)) for one in tables.list_warnings(facts)]
    if warnings:
        parts += [f"## {say('report/warnings', lang)}", "\n".join(f"- {one}" for one in warnings)]
    devices = [(one.name, one.about, one.busy, one.memory, one.temp, one.power) for one in list_devices(facts.devices)]
    codes = ("board/device", "", "board/busy", "board/memory-peak", "board/temp-peak", "board/power-mean")
    parts += _table("board/devices", [say(code, lang) if code else "" for code in codes], devices, lang)
    checkpoints = [
        (
            one["step"],
            one["size"],
            one["measures"],
            "★" if one["is_best"] else "",
            say("report/there" if one["is_there"] else "report/pruned", lang),
        )
        for one in tables.list_checkpoints(facts)
    ]
    columns = ("report/step", "report/size", "report/validation", "report/best", "report/kept")
    heads = [say(code, lang) for code in columns]
    parts += _table("report/checkpoints", heads, checkpoints, lang)
    command = tables.describe_command(facts)
    parts += [f"## {say('report/command', lang)}", _fence(command["line"])]
    config = [(one.key, one.value, one.origin) for one in tables.list_config(facts) if not one.is_default]
    parts += _table("report/config", ["", say("report/value", lang), say("report/origin", lang)], config, lang)
    parts += _table("report/machine", ["", say("report/value", lang)], tables.list_machine(facts), lang)
    if facts.log_tail:
        parts += [f"## {say('report/log', lang)}", _fence("\n".join(facts.log_tail[-_LOG_LINES:]))]
    return "\n\n".join(parts) + "\n"


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]], lang: Language) -> list[str]:
    if not rows:
        return []
    lines = ["| " + " | ".join(map(_cell, heads)) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(_cell(words_of(one, lang)) for one in row) + " |" for row in rows]
    return [f"## {say(title, lang)}", "\n".join(lines)]


def _cell(text: object) -> str:
    """Return a text that stays text in Markdown: what a run printed makes no markup, link or row of its own."""
    flat = " ".join(str(text).split())
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", flat)


def _fence(text: str) -> str:
    longest = max((len(one) for one in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def describe(facts: Facts) -> dict[str, Any]:
    """Return everything the report tells as plain values."""
    lang = language()
    steps = facts.steps
    curve: dict[str, list[float]] = {"step": [], "loss": []}
    if steps is not None:
        x, y = thin(steps.step, steps.loss, _POINTS)
        curve = {"step": x.tolist(), "loss": y.tolist()}
    gains = [{"baseline": one.name, "value": one.baseline.value, "share": one.share} for one in find_gains(facts)]
    told = {
        "schema": "report/2",
        "state": asdict(facts.state),
        "verdict": [words_of(one, lang) for one in write_verdict(facts)],
        "gains": gains,
        "redone_steps": facts.redone_steps,
        "wall_s": facts.wall_s,
        "curve": curve,
        "validations": [{"step": one["step"], "measures": one["measures"]} for one in facts.validations],
        "planned": [[words_of(one, lang) for one in row] for row in tables.compare_plan(facts)],
        "incidents": tables.list_incidents(facts),
        "warnings": [words_of(one, lang) for one in tables.list_warnings(facts)],
        "devices": [asdict(one) for one in list_devices(facts.devices)],
        "checkpoints": [
            {"step": one.step, "bytes": one.num_bytes, "size": size(one.num_bytes), "is_there": one.is_there}
            for one in facts.state.checkpoints
        ],
        "command": tables.describe_command(facts),
        "config": {
            one.key: {"value": one.value, "origin": words_of(one.origin, lang)} for one in tables.list_config(facts)
        },
        "machine": dict(tables.list_machine(facts)),
    }
    return dict(plain(told))
