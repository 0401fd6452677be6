"""The report as one HTML file: no script, nothing loaded, safe to open and to send on."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import jinja2
from markupsafe import Markup

from headway.messages import language
from headway.telemetry import RunDir, write_whole
from headway.ui.report import tables
from headway.ui.report.both_languages import both
from headway.ui.report.devices import draw_devices, draw_heat, list_devices
from headway.ui.report.figures import draw_figures, draw_shares
from headway.ui.report.gather import Facts, gather
from headway.ui.report.moments import list_moments
from headway.ui.report.plain import describe, render_markdown
from headway.ui.report.timeline import draw_timeline
from headway.ui.report.verdict import find_gains, write_verdict
from headway.ui.samples import Sample, list_samples, read_picture
from headway.units import duration, short, size

_HERE: Final = Path(__file__).parent
_SAMPLE_BYTES: Final = 640 << 10
_PICTURE_BYTES: Final = 256 << 10
_MOST_SAMPLES: Final = 24


def write_report(run: RunDir, to: Path | None = None) -> Path:
    """Write the report of a run and return its path; an older one is replaced at once."""
    return write_facts(gather(run), to or run.report, "html", list_samples(run))


def write_facts(facts: Facts, path: Path, how: str = "html", samples: Sequence[Sample] = ()) -> Path:
    """Write what was gathered and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Bytes that are not text (a lone surrogate from a log) must not keep the report from being written.
    write_whole(path, render(facts, how, samples).encode("utf-8", "replace"))
    return path


def render(facts: Facts, how: str, samples: Sequence[Sample] = ()) -> str:
    """Return the report as a page (`html`), as Markdown (`md`), or as one JSON object (`json`)."""
    if how == "md":
        return render_markdown(facts)
    return (
        json.dumps(describe(facts), ensure_ascii=False, indent=1) + "\n"
        if how == "json"
        else render_report(facts, samples)
    )


def render_report(facts: Facts, samples: Sequence[Sample] = ()) -> str:
    """Return the page."""
    style = (_HERE / "style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    loader = jinja2.FileSystemLoader(_HERE)
    pages = jinja2.Environment(
        autoescape=True, loader=loader, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return pages.get_template("page.html").render(
        say=both,
        lang=language(),
        style=Markup(style),
        style_hash=f"'sha256-{digest}'",
        samples=list(_embed(samples)),
        **_contents(facts),
    )


def _contents(facts: Facts) -> dict[str, Any]:
    return {
        "state": facts.state,
        "verdict": write_verdict(facts),
        "tiles": _tiles(facts),
        "timeline": draw_timeline(facts.events),
        "moments": list_moments(facts),
        "figures": draw_figures(facts),
        "device_figures": draw_devices(facts.devices, facts.state.started),
        "heat": draw_heat(facts.devices, facts.state.started),
        "devices": list_devices(facts.devices),
        "shares": list(_place_shares(facts)),
        "measures": tables.list_measures(facts),
        "beside": tables.list_beside(facts),
        "compared": tables.compare_plan(facts),
        "plan": tables.list_plan(facts),
        "checkpoints": tables.list_checkpoints(facts),
        "config": tables.list_config(facts),
        "machine": tables.list_machine(facts),
        "incidents": tables.list_incidents(facts),
        "warnings": tables.list_warnings(facts),
        "events": tables.list_events(facts),
        "command": tables.describe_command(facts),
        "started": tables.when(facts.state.started),
        "ended": tables.when(facts.state.ended),
        "log": facts.log_tail,
    }


def _tiles(facts: Facts) -> list[tuple[Markup, str, Markup | str]]:
    """Return the few numbers people ask for first: name, value, word beside it."""
    state = facts.state
    tiles: list[tuple[Markup, str, Markup | str]] = []
    if state.best is not None:
        tiles.append((both("report/tile-best", name=state.best.name), f"{state.best.value:.4g}", _gain_word(facts)))
    if state.loss is not None:
        tiles.append((both("report/tile-loss"), f"{state.loss:.4g}", both("report/at-step", step=state.step)))
    if state.rate_samples_s is not None:
        times = state.tokens_per_sample or 1
        unit = both("report/unit-tokens" if state.tokens_per_sample else "report/unit-samples")
        tiles.append((both("report/tile-speed"), short(state.rate_samples_s * times), unit))
    tiles.append((both("report/tile-wall"), duration(facts.wall_s), both("report/attempts", num=state.attempts)))
    kept = [saved for saved in state.checkpoints if saved.is_there]
    total = size(sum(saved.num_bytes for saved in kept))
    tiles.append((both("report/tile-kept"), str(len(kept)), total))
    return tiles


def _gain_word(facts: Facts) -> Markup | str:
    gains = [gain for gain in find_gains(facts) if math.isfinite(gain.share)]
    if not gains:
        return both("report/at-step", step=facts.state.best.step if facts.state.best else 0)
    best = gains[0]
    code = "report/better" if best.share > 0 else "report/worse"
    return both(code, share=f"{abs(best.share) * 100:.1f}", name=best.name)


def _embed(samples: Sequence[Sample]) -> Iterator[dict[str, str]]:
    """Yield the samples that the page has room for, pictures as data: the page loads nothing."""
    left = _SAMPLE_BYTES
    for one in samples[:_MOST_SAMPLES]:
        data = read_picture(one) if one.media else None
        if data is not None and len(data) <= min(left, _PICTURE_BYTES):
            left -= len(data)
            yield {"name": one.name, "text": "", "src": f"data:{one.media};base64,{base64.b64encode(data).decode()}"}
        elif not one.media and one.text.strip():
            yield {"name": one.name, "text": one.text, "src": ""}


def _place_shares(facts: Facts) -> Any:
    """Yield class, name, text, per cent and left edge of each part of the bar."""
    left = 0.0
    for style, name, text, share in draw_shares(facts):
        yield style, name, text, share, left
        left += share
