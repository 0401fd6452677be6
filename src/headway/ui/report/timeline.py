"""The run over the clock: attempts as bars, saves, validations and incidents as marks."""

from __future__ import annotations

import math
from collections.abc import Iterable

from markupsafe import Markup

from headway.messages import LANGUAGES, say
from headway.telemetry import Event, number
from headway.ui.report.axis import Scale, pick_ticks
from headway.ui.report.both_languages import both_texts
from headway.units import duration

_WIDTH, _HEIGHT, _LEFT, _RIGHT = 1460, 150, 96, 16
_LANES = {"attempts": 30, "validations": 64, "saves": 88, "incidents": 112}
_BASE = 126


def draw_timeline(events: list[Event]) -> Markup:
    """Return the time line as one SVG element; empty when there is nothing to show."""
    events = [event for event in events if math.isfinite(number(event.get("t")))]
    times = [number(event.get("t")) for event in events]
    if len(times) < 2 or times[-1] <= times[0] or not math.isfinite(max(times) - times[0]):
        return Markup("")
    start, end = times[0], max(times)
    scale = Scale(0.0, end - start, _LEFT, _WIDTH - _RIGHT)
    marks = [
        *_attempts(events, start, end, scale),
        *_marks(events, "validation", "validations", start, scale),
        *_marks(events, "checkpoint_committed", "saves", start, scale),
        *_marks(events, "incident", "incidents", start, scale),
        *_marks(events, "guard", "incidents", start, scale),
        *_marks(events, "checkpoint_failed", "incidents", start, scale),
    ]
    names = [both_texts(0, y + 4, f"report/lane-{lane}", "lane") for lane, y in _LANES.items()]
    body = Markup("").join([*_clock(scale), *names, *marks])
    return Markup('<svg class="wide" viewBox="0 0 {} {}" aria-hidden="true">{}</svg>').format(_WIDTH, _HEIGHT, body)


def _clock(scale: Scale) -> Iterable[Markup]:
    yield Markup('<line class="base" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(_LEFT, _WIDTH - _RIGHT, _BASE, _BASE)
    for tick in pick_ticks(scale.low, scale.high, 10):
        text = '<text class="tick mid" x="{:.1f}" y="{}">{}</text>'
        yield Markup(text).format(scale.at(tick), _BASE + 17, duration(tick) if tick else "0")


def _attempts(events: list[Event], start: float, end: float, scale: Scale) -> Iterable[Markup]:
    began: Event | None = None
    for event in events:
        kind = event.get("kind")
        if kind == "attempt_started":
            began = event
        elif kind == "training_started" and began is not None:
            began = {**began, "resume_step": event.get("step"), "source": event.get("source")}
        elif kind in ("attempt_ended", "run_ended") and began is not None:
            yield _bar(began, event, number(event.get("t")) - start, start, scale)
            began = None
    if began is not None:
        yield _bar(began, {}, end - start, start, scale)


def _bar(began: Event, ended: Event, until: float, start: float, scale: Scale) -> Markup:
    left = scale.at(number(began.get("t")) - start)
    right = max(left + 2, scale.at(until))
    # A run stopped on request and one that finished are both fine; only a failure is marked as one.
    how = str(ended.get("how") or ended.get("state") or "running")
    style = "bad" if how in ("failed", "crashed", "hung", "killed", "lost") else "good"
    facts = {"attempt": began.get("attempt"), "step": began.get("resume_step"), "how": how}
    code = "report/bar-memory" if began.get("source") == "memory" else "report/bar"
    title = " / ".join(say(code, lang, **facts) for lang in LANGUAGES)
    shape = (
        '<g class="attempt {}"><title>{}</title><rect x="{:.1f}" y="{}" width="{:.1f}" height="20" rx="4"/>'
        '<text class="inbar" x="{:.1f}" y="{}">{}</text></g>'
    )
    y = _LANES["attempts"] - 10
    words = f"#{began.get('attempt')}" if right - left > 28 else ""
    return Markup(shape).format(style, title, left, y, right - left, left + 8, y + 14, words)


def _marks(events: list[Event], kind: str, lane: str, start: float, scale: Scale) -> Iterable[Markup]:
    y = _LANES[lane]
    for event in events:
        if event.get("kind") != kind:
            continue
        x = scale.at(number(event.get("t")) - start)
        style = f"{lane} best" if event.get("best") else lane
        shape = '<g class="mark {}"><title>{}</title><path d="{}"/></g>'
        yield Markup(shape).format(style, _describe(event), _shape(lane, x, y))


def _describe(event: Event) -> str:
    step = f"{event['step']}: " if "step" in event else ""
    if event.get("kind") == "validation":
        return step + ", ".join(f"{name} {number(value):.4g}" for name, value in (event.get("measures") or {}).items())
    return step + str(event.get("text") or event.get("why") or event.get("what") or event.get("path") or "")


def _shape(lane: str, x: float, y: float) -> str:
    if lane == "saves":
        return f"M{x - 4.5:.1f} {y - 4.5}h9v9h-9z"
    if lane == "incidents":
        return f"M{x:.1f} {y - 7}l7 12h-14z"
    return f"M{x:.1f} {y - 6}l6 6l-6 6l-6 -6z"
