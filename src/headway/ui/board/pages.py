"""What each page shows, as plain values for its template."""

from __future__ import annotations

import math
import shlex
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from markupsafe import Markup

from headway.messages import LANGUAGES
from headway.redact import redact, redact_lines
from headway.telemetry import (
    PARTS,
    Event,
    RunDir,
    RunRow,
    number,
    own_step_s,
    read_log_tail,
    tail_metrics,
    whole,
)
from headway.telemetry.sample_gpu import GpuReader, find_source
from headway.telemetry.sample_host import HostSampler
from headway.ui.board import logs
from headway.ui.board.around import differences
from headway.ui.board.charts import AXES, SMOOTH, Choice, draw_chosen, list_axes, overlay, part_step
from headway.ui.board.sparkline import draw_sparkline
from headway.ui.board.store import Store, run_id
from headway.ui.compare import compare_runs
from headway.ui.findings import finding_command, finding_text
from headway.ui.report import (
    Facts,
    both,
    both_or_plain,
    draw_devices,
    draw_heat,
    draw_shares,
    draw_timeline,
    host_line,
    list_devices,
    tables,
    write_verdict,
)
from headway.ui.report.both_languages import both_said
from headway.ui.report.thin import thin
from headway.ui.samples import list_samples
from headway.ui.text import clean_text
from headway.units import ABSENT, age, count, duration, short, size

_MOST_COMPARED: Final = 6
_MOST_RANKS: Final = 128
_STATES: Final = ("running", "done", "stopped", "failed", "interrupted", "lost")
Query = Mapping[str, str]


def list_runs(store: Store, query: Query, num: int) -> dict[str, Any]:
    """Return the rows of the table that a search leaves."""
    rows = store.rows()
    words, state = query.get("q", "")[:200].casefold().split(), query.get("state", "")
    counts = {one: sum(row.state == one for row in rows) for one in _STATES}
    found = [
        row
        for row in rows
        if (not state or row.state == state) and all(word in _searched(store, row) for word in words)
    ]
    at = _whole(query.get("at"), 0, max(0, len(found) - 1)) or 0
    return {
        "rows": [_run_row(store, row) for row in found[at : at + num]],
        "num": len(found),
        "total": len(rows),
        "first": at,
        "before": max(0, at - num) if at else None,
        "after": at + num if at + num < len(found) else None,
        "q": query.get("q", "")[:200],
        "state": state if state in _STATES else "",
        "counts": [(one, num_of) for one, num_of in counts.items() if num_of],
        "live": True,
    }


def _searched(store: Store, row: RunRow) -> str:
    note = store.note(row.name)
    return " ".join([row.name, row.recipe or "", row.state, note.text, *note.tags]).casefold()


def _run_row(store: Store, row: RunRow) -> dict[str, Any]:
    total = row.total_steps
    share = min(1.0, row.step / total) if total else None
    rate = row.rate_samples_s
    return {
        "id": run_id(row.name),
        "name": clean_text(row.name),
        "recipe": clean_text(row.recipe or ""),
        "tags": [clean_text(tag) for tag in store.note(row.name).tags],
        "note": clean_text(store.note(row.name).text.split("\n")[0][:120]),
        "state": row.state,
        "step": f"{row.step:,}",
        "total": f"{total:,}" if total else "",
        "percent": None if share is None else round(100 * share),
        "loss": _figure(row.loss),
        "best": f"{clean_text(row.best.name)} {row.best.value:.4g}" if row.best else "",
        "rate": _rate(rate, row.tokens_per_sample),
        "started": tables.when(row.started),
        "ago": _ago(row.started),
        "size": size(row.checkpoint_bytes) if row.num_checkpoints else "",
        "spark": draw_sparkline(store.sparkline(row.name)),
    }


def describe_run(store: Store, run: RunDir, facts: Facts) -> dict[str, Any]:
    """Return what is at the head of every page of a run."""
    state = facts.state
    share = min(1.0, state.step / state.total_steps) if state.total_steps else None
    return {
        "id": run_id(run.name),
        "name": clean_text(state.name),
        "state": state.state,
        "recipe": clean_text(state.recipe or ""),
        "step": f"{state.step:,}",
        "total": f"{state.total_steps:,}" if state.total_steps else "",
        "percent": None if share is None else round(100 * share, 1),
        "width": None if share is None else round(1000 * share),
        "eta": duration(state.eta_s) if state.eta_s is not None else "",
        "ends": time.strftime("%H:%M", time.localtime(time.time() + state.eta_s)) if state.eta_s is not None else "",
        "loss": _figure(state.loss),
        "rate": _rate(state.rate_samples_s, state.tokens_per_sample),
        "tags": [clean_text(tag) for tag in store.note(run.name).tags],
        "note": "\n".join(clean_text(line) for line in store.note(run.name).text.splitlines()),
        "is_live": state.state == "running",
        "is_glance": facts.is_glance,
        "num_findings": len(_open_findings(facts.events)) + state.incidents,
        "num_ranks": len(state.ranks),
        "started": tables.when(state.started),
    }


def _overview(store: Store, run: RunDir, facts: Facts, query: Query) -> dict[str, Any]:
    choice = Choice.of(query)
    figures = draw_chosen(facts, choice)
    num_first = 1 if figures and figures[0].is_wide else 2
    shares, left = [], 0.0
    for style, name, text, share in draw_shares(facts):
        shares.append((style, name, text, share, left))
        left += share
    return {
        "verdict": write_verdict(facts),
        "figures": figures[:num_first],
        "others": figures[num_first:],
        "choice": choice,
        "axes": [one for one in AXES if one in list_axes(facts)],
        "smooths": SMOOTH,
        "timeline": draw_timeline(facts.events),
        "shares": shares,
        "heat": draw_heat(facts.devices, facts.state.started),
        "devices": list_devices(facts.devices),
        "tiles": _tiles(facts),
        "findings": _open_findings(facts.events),
        "log": logs.read_window(run, None, None).lines[-12:],
        "checkpoints": [one for one in tables.list_checkpoints(facts) if one["is_there"]][-3:],
    }


def _tiles(facts: Facts) -> list[tuple[Markup, str, Markup | str]]:
    state = facts.state
    tiles: list[tuple[Markup, str, Markup | str]] = []
    if state.loss is not None:
        tiles.append((both("report/tile-loss"), _figure(state.loss), both("report/at-step", step=state.step)))
    if state.best is not None:
        tiles.append(
            (
                both("report/tile-best", name=clean_text(state.best.name)),
                f"{state.best.value:.4g}",
                both("report/at-step", step=state.best.step),
            )
        )
    if state.rate_samples_s is not None:
        times = state.tokens_per_sample or 1
        unit = both("report/unit-tokens" if state.tokens_per_sample else "report/unit-samples")
        tiles.append((both("report/tile-speed"), short(state.rate_samples_s * times), unit))
    planned = tables.compare_plan(facts)
    if state.eta_s is not None:
        tiles.append((both("board/eta"), duration(state.eta_s), both("board/of-wall", wall=duration(facts.wall_s))))
    else:
        tiles.append((both("report/tile-wall"), duration(facts.wall_s), both("report/attempts", num=state.attempts)))
    forecast = facts.plan.get("forecast") or {}
    step_s = tables.number_or_none(forecast.get("step_s"))
    if step_s is not None and facts.steps is not None:
        took = facts.steps.own_s[facts.steps.weight > 0]
        if np.isfinite(took).any() and len(planned):
            real = float(np.nanmedian(took))
            tiles.append((both("board/step-time"), duration(real), both("board/planned", planned=duration(step_s))))
    kept = [saved for saved in state.checkpoints if saved.is_there]
    total = size(sum(saved.num_bytes for saved in kept))
    tiles.append((both("report/tile-kept"), str(len(kept)), total))
    return tiles


def _ranks(store: Store, run: RunDir, facts: Facts, query: Query) -> dict[str, Any]:
    live = {one.rank: one for one in facts.state.ranks}
    most = max((one.step for one in live.values()), default=0)
    rows = []
    for rank in run.ranks()[:_MOST_RANKS]:
        steps = tail_metrics(run.metrics(rank))
        num = len(steps["step"])
        times = [own_step_s(steps, at) for at in range(num)]
        one = live.get(rank)
        step = one.step if one is not None else int(steps["step"][-1]) if num else 0
        lines = read_log_tail(run.stdout(rank), 4096).decode("utf-8", "replace").splitlines()
        last = next((clean_text(line) for line in reversed(lines) if line.strip()), "")
        parts = {part: _mean(steps[part]) for part in PARTS if part not in ("save", "eval")}
        total = sum(value for value in parts.values() if value and math.isfinite(value))
        at, bars = 0.0, []
        for part, value in parts.items():
            if value and total > 0:
                bars.append((part, at, 200 * value / total, f"{1000 * value:.3g} ms"))
                at += 200 * value / total
        reading = facts.devices.at(facts.devices.last, "ranks", rank)
        rows.append(
            {
                "rank": rank,
                "phase": one.phase if one is not None else "ended",
                "step": f"{step:,}",
                "lag": max(0, most - step),
                "age": duration(one.age_s) if one is not None and one.age_s is not None else "",
                "is_late": one is not None and one.age_s is not None and one.age_s > 10,
                "time": duration(_mean(times)) if times else ABSENT,
                "memory": size(float(steps["mem"][-1])) if num and math.isfinite(steps["mem"][-1]) else ABSENT,
                "cores": f"{number(reading.get('cpu')):.2f}" if math.isfinite(number(reading.get("cpu"))) else ABSENT,
                "bars": bars,
                "last": redact_lines([last[:300]])[0],
            }
        )
    return {"ranks": rows, "parts": [part for part in PARTS if part not in ("save", "eval")]}


def _devices(store: Store, run: RunDir, facts: Facts, query: Query) -> dict[str, Any]:
    history = facts.devices
    return {
        "devices": list_devices(history),
        "heat": draw_heat(history, facts.state.started),
        "figures": draw_devices(history, facts.state.started),
        "host": host_line(history) if history.readings else None,
        "has_gpus": bool(history.gpus()),
        "num": sum(max(1, whole(one.get("n")) or 1) for one in history.readings),
    }


def _logs(store: Store, run: RunDir, facts: Facts, query: Query) -> dict[str, Any]:
    ranks = run.ranks()
    rank = _whole(query.get("rank"), 0, 1 << 20)
    rank = rank if rank in ranks else None
    text = query.get("q", "")[:200]
    if text:
        window = logs.search(run, rank, text)
        return _window(window, rank, ranks, text, None)
    error = logs.first_error(run, rank)
    at = error if query.get("at") == "error" else _whole(query.get("at"), 0, 1 << 60)
    window = logs.read_window(run, rank, at)
    found = _window(window, rank, ranks, "", error)
    found["before"] = logs.before(window, run, rank) if window.start > 0 else None
    found["after"] = window.end if window.end < window.size else None
    return found


def _window(window: logs.LogWindow, rank: int | None, ranks: list[int], text: str, error: int | None) -> dict[str, Any]:
    return {
        "window": window,
        "rank": rank,
        "ranks": ranks[:_MOST_RANKS],
        "q": text,
        "error": error,
        "before": None,
        "after": None,
        "size": size(window.size),
    }


def _checkpoints(store: Store, run: RunDir, facts: Facts, query: Query) -> dict[str, Any]:
    name = shlex.quote(clean_text(run.name))
    rows = tables.list_checkpoints(facts)
    free = number(facts.devices.at(facts.devices.last, "host").get("disk_free"))
    sizes = [saved.num_bytes for saved in facts.state.checkpoints[-1:]]
    return {
        "checkpoints": [
            {**row, "command": f"headway resume {name} --step {row['step']}" if row["is_there"] else ""}
            for row in reversed(rows)
        ],
        "verify": f"headway ckpt verify {name}",
        "free": size(free) if math.isfinite(free) else "",
        "more": int(free // sizes[0]) if sizes and sizes[0] and math.isfinite(free) else None,
        "is_script": facts.state.recipe is None,
    }


def _findings(store: Store, run: RunDir, facts: Facts, query: Query) -> dict[str, Any]:
    return {
        "open": _open_findings(facts.events),
        "over": _over_findings(facts.events),
        "incidents": tables.list_incidents(facts),
        "hangs": [_hang(event, facts.state.started) for event in facts.events if event.get("kind") == "hang"],
        "warnings": tables.list_warnings(facts),
        "events": tables.list_events(facts)[-200:],
    }


def _open_findings(events: list[Event]) -> list[dict[str, Any]]:
    """Return what was found and has not ended."""
    found: dict[tuple[str, str], Event] = {}
    for event in events:
        key = (str(event.get("code")), str(event.get("key")))
        if event.get("kind") == "finding":
            found[key] = event
        elif event.get("kind") == "finding_over":
            found.pop(key, None)
    return [_finding(event) for event in found.values()]


def _over_findings(events: list[Event]) -> list[dict[str, Any]]:
    return [_finding(event) for event in events if event.get("kind") == "finding_over"]


def _finding(event: Event) -> dict[str, Any]:
    cost = number(event.get("cost_s"))
    return {
        "code": str(event.get("code")),
        "text": both_said({lang: finding_text(event, lang) for lang in LANGUAGES}),
        "when": tables.when(tables.number_or_none(event.get("since", event.get("t")))),
        "seconds": duration(tables.number_or_none(event.get("seconds"))) if "seconds" in event else "",
        "cost": duration(cost) if math.isfinite(cost) and cost > 0 else "",
        "command": finding_command(event),
    }


def _hang(event: Event, started: float | None) -> dict[str, Any]:
    facts = event.get("facts")
    known = {str(key): value for key, value in facts.items()} if isinstance(facts, dict) else {}
    code = str(event.get("code"))
    ranks = event.get("ranks")
    return {
        "after": duration(max(0.0, number(event.get("t")) - (started or 0.0))),
        "seconds": duration(tables.number_or_none(event.get("seconds"))),
        "text": both_or_plain(code, code, **{key: one for key, one in known.items() if key not in ("code", "plain")}),
        "ranks": [one for one in ranks if isinstance(one, dict)] if isinstance(ranks, list) else [],
        "rank": event.get("rank"),
    }


def _plan(store: Store, run: RunDir, facts: Facts, query: Query) -> dict[str, Any]:
    return {"compared": tables.compare_plan(facts), "plan": tables.list_plan(facts)}


def _samples(store: Store, run: RunDir, facts: Facts, query: Query) -> dict[str, Any]:
    name = shlex.quote(clean_text(run.name))
    return {
        "samples": list_samples(run),
        "measures": tables.list_measures(facts),
        "command": f"headway predict {name}" if facts.state.recipe else "",
    }


def _config(store: Store, run: RunDir, facts: Facts, query: Query) -> dict[str, Any]:
    command = tables.describe_command(facts)
    rows = [
        {"key": row.key, "value": row.value, "origin": row.origin, "is_default": row.is_default}
        for row in tables.list_config(facts)
    ]
    return {
        "config": [row for row in rows if not row["is_default"]],
        "defaults": [row for row in rows if row["is_default"]],
        "machine": [(key, redact(value)) for key, value in tables.list_machine(facts)],
        "command": command,
        "note_command": f"headway note {shlex.quote(clean_text(run.name))} 'what was tried' --tag baseline",
    }


TABS: Final[Mapping[str, Callable[[Store, RunDir, Facts, Query], dict[str, Any]]]] = {
    "overview": _overview,
    "ranks": _ranks,
    "devices": _devices,
    "logs": _logs,
    "checkpoints": _checkpoints,
    "findings": _findings,
    "plan": _plan,
    "samples": _samples,
    "config": _config,
}


def find_compared(store: Store, query: Query) -> list[RunDir]:
    """Return the runs of an address; `runs` holds their ids, with commas between them."""
    wanted = [one for one in dict.fromkeys(query.get("runs", "").split(",")) if one][:_MOST_COMPARED]
    return [run for one in wanted if (run := store.find(one)) is not None]


def named(store: Store, runs: list[RunDir]) -> list[tuple[str, Facts]]:
    """Return what is known of runs, by the names that are shown."""
    return [(clean_text(run.name), store.facts(run)) for run in runs]


def compare(store: Store, query: Query) -> dict[str, Any]:
    """Return runs side by side."""
    runs = find_compared(store, query)
    facts = [store.facts(run) for run in runs]
    choice = Choice.of(query)
    beside = compare_runs(runs) if len(runs) > 1 else []
    keys = list(dict.fromkeys(key for one in beside for key in one.settings))
    settings = [(key, [tables.hide(key, one.settings.get(key, "")) for one in beside]) for key in keys]
    axes = [one for one in AXES if all(one in list_axes(fact) for fact in facts)]
    chosen = {run_id(run.name) for run in runs}
    return {
        "runs": [describe_run(store, run, fact) for run, fact in zip(runs, facts, strict=True)],
        "figures": overlay(named(store, runs), choice),
        "keys": [row for row in settings if sum(map(bool, row[1])) > 1],
        "one_sided": [row for row in settings if sum(map(bool, row[1])) <= 1],
        "around": differences(facts),
        "results": [_result(fact) for fact in facts],
        "parts_at": part_step(facts),
        "choice": choice,
        "axes": axes or ["step"],
        "smooths": SMOOTH,
        "others": [
            {"id": run_id(row.name), "name": clean_text(row.name), "state": row.state}
            for row in store.rows()[:200]
            if run_id(row.name) not in chosen
        ],
        "ids": [run_id(run.name) for run in runs],
        "live": any(fact.state.state == "running" for fact in facts),
    }


def _result(facts: Facts) -> dict[str, Markup | str]:
    state = facts.state
    took = facts.steps.own_s[facts.steps.weight > 0] if facts.steps is not None else np.zeros(0)
    return {
        "best": f"{clean_text(state.best.name)} {state.best.value:.4g}" if state.best else ABSENT,
        "loss": _figure(state.loss),
        "step": count(state.step),
        "speed": _rate(state.rate_samples_s, state.tokens_per_sample) or ABSENT,
        "step_time": duration(float(np.nanmedian(took))) if np.isfinite(took).any() else ABSENT,
        "wall": duration(facts.wall_s),
        "commit": tables.describe_command(facts)["commit"][:10],
    }


class MachineReader:
    """Reads this machine now, at most every two seconds, however many look."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._source: Any = None
        self._reader: GpuReader | None = None
        self._host: HostSampler | None = None
        self._last: tuple[float, dict[str, Any]] | None = None

    def read(self, store: Store) -> dict[str, Any]:
        """Return the last reading, or a fresh one."""
        with self._lock:
            now = time.monotonic()
            if self._last is not None and now - self._last[0] < 2.0:
                return self._last[1]
            if self._host is None:
                self._host = HostSampler(1, store.out)
                self._source = find_source(None)
                self._reader = GpuReader(self._source) if self._source is not None else None
            host = {**self._host.read_host(now), **{f"total_{k}": v for k, v in self._host.about().items()}}
            gpus = self._reader.read(now) if self._reader is not None else []
            about = {one["i"]: one for one in self._source.about()} if self._source is not None else {}
            found = {
                "host": host,
                "gpus": [{**about.get(one["i"], {}), **{f"now_{k}": v for k, v in one.items()}} for one in gpus],
            }
            self._last = (now, found)
            return found


def machine(store: Store, reader: MachineReader) -> dict[str, Any]:
    """Return this machine: host, GPUs with who holds them, and the runs that train."""
    found = reader.read(store)
    host = found["host"]
    running = [row for row in store.rows() if row.state == "running"]
    newest = next((RunDir(store.out / row.name) for row in store.rows()), None)
    facts = store.facts(newest) if newest is not None else None
    return {
        "host": [
            ("cores", f"{host.get('total_cores')}"),
            ("cpu", f"{host['cpu']:.0f}%" if host.get("cpu") is not None else ABSENT),
            ("memory", f"{size(number(host.get('mem')))} / {size(number(host.get('total_mem')))}"),
            ("disk", size(number(host.get("disk_free")))),
            ("stall", f"{host['stall_cpu']:.0f}%" if host.get("stall_cpu") is not None else ABSENT),
        ],
        "gpus": [_gpu_now(one) for one in found["gpus"]],
        "running": [_run_row(store, row) for row in running[:50]],
        "rows": [(key, redact(value)) for key, value in tables.list_machine(facts)] if facts is not None else [],
    }


def _gpu_now(one: dict[str, Any]) -> dict[str, Any]:
    util = number(one.get("now_util"))
    return {
        "name": f"GPU {one.get('now_i')}",
        "about": str(one.get("name") or ABSENT),
        "is_lost": bool(one.get("now_lost")),
        "util": f"{util:.0f}%" if math.isfinite(util) else ABSENT,
        "width": round(util) if math.isfinite(util) else 0,
        "memory": f"{size(number(one.get('now_mem')))} / {size(number(one.get('mem')))}",
        "temp": f"{number(one.get('now_temp')):.0f} °C" if one.get("now_temp") is not None else ABSENT,
        "power": f"{number(one.get('now_power')):.0f} W" if one.get("now_power") is not None else ABSENT,
        "holders": "; ".join(map(str, one.get("now_procs") or ())),
    }


def metrics_of(facts: Facts) -> dict[str, Any]:
    """Return the loss as a few hundred points, and all validations."""
    if facts.steps is None:
        return {"schema": "board-metrics/1", "step": [], "loss": [], "validations": []}
    x, y = thin(facts.steps.step, facts.steps.loss, 1200)
    return {
        "schema": "board-metrics/1",
        "step": [int(one) for one in x],
        "loss": y.tolist(),
        "validations": [{"step": one["step"], "measures": one["measures"]} for one in facts.validations],
    }


def _mean(values: Any) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return math.fsum(finite) / len(finite) if finite else math.nan


def _figure(value: float | None) -> str:
    return ABSENT if value is None or math.isnan(value) else f"{value:.4g}"


def _rate(rate: float | None, tokens: int | None) -> Markup:
    if rate is None or not math.isfinite(rate):
        return Markup("")
    return both("ui/rate-tokens", rate=short(rate * tokens)) if tokens else both("ui/rate-samples", rate=short(rate))


def _ago(unix: float | None) -> Markup:
    """Return how long ago, in one unit, as `headway runs` says it."""
    if unix is None:
        return Markup("")
    unit, num = age(time.time() - unix)
    return both(f"ui/ago-{unit}", num=num)


def _whole(text: str | None, low: int, high: int) -> int | None:
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 18:
        return None
    return max(low, min(high, int(text)))
