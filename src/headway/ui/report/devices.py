"""What GPUs, host and ranks did over a run: curves, a heat-map against the targets, and a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from markupsafe import Markup

from headway.messages import LANGUAGES, say
from headway.telemetry import DeviceHistory, number
from headway.ui.report.axis import Label, pick_ticks
from headway.ui.report.both_languages import both, both_list, both_texts
from headway.ui.report.figures import Figure
from headway.ui.report.svg import Line, Plot
from headway.ui.report.thin import Floats
from headway.units import ABSENT, duration, size

_STYLES: Final = (0, 4, 2, 3, 1, 5, 6, 7)
_MOST_LINES: Final = 8
_COLUMNS: Final = 120
_WIDTH, _LEFT, _RIGHT, _ROW = 1460, 96, 16, 22
TARGETS: Final = {"util": (90.0, 100.0), "temp": (0.0, 80.0)}
"""What the guides ask for: utilisation of at least 90%, at most 80 °C."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """One GPU or rank over the run."""

    name: str
    about: str
    busy: str
    """Mean utilisation, or cores in use."""
    is_low: bool
    memory: str
    temp: str
    is_hot: bool
    power: str
    activity: str
    """SM, tensor and DRAM activity where the card counts it."""
    throttle: str
    """Reasons that held its clock down, with the share of time."""
    holders: str
    """Who has memory on it now."""


@dataclass(frozen=True, slots=True)
class _Curve:
    """Which value is drawn, and how its numbers are written."""

    title: str
    part: str
    key: str
    label: Label
    unit: str
    target: float | None = None
    times: float = 1.0


_GPU_CURVES: Final = (
    _Curve("board/plot-util", "gpus", "util", lambda value: f"{value:.4g}%", "%", 90.0),
    _Curve("board/plot-gpu-memory", "gpus", "mem", lambda value: f"{value:.4g} GiB", "GiB", times=float(1 << 30)),
    _Curve("board/plot-temp", "gpus", "temp", lambda value: f"{value:.4g} °C", "°C", 80.0),
    _Curve("board/plot-power", "gpus", "power", lambda value: f"{value:.4g} W", "W"),
)
_CPU_CURVES: Final = (
    _Curve("board/plot-cores", "ranks", "cpu", lambda value: f"{value:.3g}", ""),
    _Curve("board/plot-rank-memory", "ranks", "mem", lambda value: f"{value:.4g} GiB", "GiB", times=float(1 << 30)),
)


def draw_devices(history: DeviceHistory, started: float | None) -> list[Figure]:
    """Return the curves of the run's devices over its time; on a run without GPUs those of its ranks."""
    if len(history.readings) < 2:
        return []
    at = np.frombuffer(history.times()) - (started or history.times()[0])
    curves = _GPU_CURVES if history.gpus() else _CPU_CURVES
    return [figure for curve in curves if (figure := _draw(history, curve, at))]


def _draw(history: DeviceHistory, curve: _Curve, at: Floats) -> Figure | None:
    indexes = history.gpus() if curve.part == "gpus" else history.ranks()
    values = {index: np.frombuffer(history.column(curve.part, curve.key, index)) / curve.times for index in indexes}
    values = {index: found for index, found in values.items() if np.isfinite(found).any()}
    if not values:
        return None
    name = "board/gpu" if curve.part == "gpus" else "report/rank"
    lines = [
        Line(x=at, y=found, label=name, index=index, style=f"s{_STYLES[place]}")
        for place, (index, found) in enumerate(list(values.items())[:_MOST_LINES])
    ]
    everything = np.concatenate(list(values.values()))
    plot = Plot(
        lines=lines,
        label=curve.label,
        unit=curve.unit,
        from_zero=True,
        level=None if curve.target is None else (curve.target, curve.label(curve.target)),
        axis="board/axis-time",
        at=lambda value: duration(value) if value else "0",
    )
    return Figure(
        key=f"{curve.part}-{curve.key}",
        title=both(curve.title),
        note=both(
            "board/note-mean",
            mean=curve.label(float(np.nanmean(everything))),
            most=curve.label(float(np.nanmax(everything))),
        ),
        drawn=plot,
        legend=tuple((line.style, both(name, rank=line.index)) for line in lines) if len(lines) > 1 else (),
    )


def draw_heat(history: DeviceHistory, started: float | None) -> Markup:
    """Return one row per GPU or rank and one column per stretch of time, coloured by how busy it was."""
    if len(history.readings) < 2:
        return Markup("")
    part, key, top = ("gpus", "util", 100.0) if history.gpus() else ("ranks", "cpu", _cores_per_rank(history))
    indexes = (history.gpus() if part == "gpus" else history.ranks())[:64]
    times = np.frombuffer(history.times())
    start, end = float(times[0]), float(times[-1])
    if not indexes or end <= start:
        return Markup("")
    num = max(2, min(_COLUMNS, len(times)))
    # A reading tells of the time since the one before it.
    place = np.minimum(((times - start) / (end - start) * num).astype(int), num - 1)
    wide = (_WIDTH - _LEFT - _RIGHT) / num
    cells = []
    for row, index in enumerate(indexes):
        column = np.frombuffer(history.column(part, key, index))
        name = "board/gpu" if part == "gpus" else "report/rank"
        title = Markup("").join(
            Markup('<text lang="{}" class="lane" x="0" y="{}">{}</text>').format(
                lang, row * _ROW + 15, say(name, lang, rank=index)
            )
            for lang in LANGUAGES
        )
        cells.append(title)
        for at in range(num):
            found = column[place == at]
            found = found[np.isfinite(found)]
            if len(found):
                cells.append(_cell(_LEFT + at * wide, row * _ROW, wide, float(found.mean()), top, part))
    height = len(indexes) * _ROW
    clock = _clock(start - (started or start), end - (started or start), height)
    body = Markup("").join([*cells, clock])
    return Markup('<svg class="wide heat" viewBox="0 0 {} {}" aria-hidden="true">{}</svg>').format(
        _WIDTH, height + 26, body
    )


def _cell(x: float, y: float, wide: float, value: float, top: float, part: str) -> Markup:
    level = max(0, min(5, int(6 * value / top))) if top > 0 else 0
    words = f"{value:.0f}%" if part == "gpus" else f"{value:.2f}"
    shape = '<rect class="h{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}"><title>{}</title></rect>'
    return Markup(shape).format(level, x, y + 1, wide + 0.5, _ROW - 3, words)


def _clock(first: float, last: float, y: int) -> Markup:
    parts = []
    for tick in pick_ticks(first, last, 10):
        x = _LEFT + (tick - first) / (last - first) * (_WIDTH - _LEFT - _RIGHT)
        text = '<text class="tick mid" x="{:.1f}" y="{}">{}</text>'
        parts.append(Markup(text).format(x, y + 17, duration(tick) if tick else "0"))
    return Markup("").join(parts) + both_texts(0, y + 17, "board/axis-time", "tick")


def _cores_per_rank(history: DeviceHistory) -> float:
    cores = number(history.about.get("cores"))
    return max(1.0, cores / max(1, len(history.ranks()))) if math.isfinite(cores) else 1.0


def list_devices(history: DeviceHistory) -> list[DeviceRow]:
    """Return a row per GPU, or per rank on a run without GPUs."""
    if history.gpus():
        return [_gpu_row(history, index) for index in history.gpus()]
    return [_rank_row(history, rank) for rank in history.ranks()]


def _gpu_row(history: DeviceHistory, index: int) -> DeviceRow:
    about = history.gpu_about(index)
    columns = {key: np.frombuffer(history.column("gpus", key, index)) for key in ("util", "mem", "temp", "power")}
    util, temp = _mean(columns["util"]), _most(columns["temp"])
    total, cap = number(about.get("mem")), number(about.get("power_cap"))
    parts = {key: _mean(np.frombuffer(history.column("gpus", key, index))) for key in ("sm", "tensor", "dram")}
    used, power = _most(columns["mem"]), _mean(columns["power"])
    return DeviceRow(
        name=f"GPU {index}",
        about=str(about.get("name") or ABSENT),
        busy=_percent(util),
        is_low=util < TARGETS["util"][0],
        memory=f"{size(used)} / {size(total)}" if math.isfinite(total) else size(used),
        temp=f"{temp:.0f} °C" if math.isfinite(temp) else ABSENT,
        is_hot=temp > TARGETS["temp"][1],
        power=f"{power:.0f}{f' / {cap:.0f}' if math.isfinite(cap) else ''} W" if math.isfinite(power) else ABSENT,
        activity=" · ".join(f"{key} {value:.0f}%" for key, value in parts.items() if math.isfinite(value)),
        throttle=_throttle(history, index),
        holders="; ".join(map(str, history.at(history.last, "gpus", index).get("procs") or ())),
    )


def _rank_row(history: DeviceHistory, rank: int) -> DeviceRow:
    cores = np.frombuffer(history.column("ranks", "cpu", rank))
    mean = _mean(cores)
    return DeviceRow(
        name=f"rank {rank}",
        about="CPU",
        busy=f"{mean:.2f}" if math.isfinite(mean) else ABSENT,
        is_low=False,
        memory=size(_most(np.frombuffer(history.column("ranks", "mem", rank)))),
        temp=ABSENT,
        is_hot=False,
        power=ABSENT,
        activity="",
        throttle="",
        holders="",
    )


def _throttle(history: DeviceHistory, index: int) -> Markup:
    seen: dict[str, float] = {}
    total = 0.0
    for reading in history.readings:
        one, weight = history.at(reading, "gpus", index), max(1.0, number(reading.get("n")))
        total += weight
        for reason in one.get("throttle") or ():
            seen[str(reason)] = seen.get(str(reason), 0.0) + weight
    return both_list(f"{reason} {100 * weight / total:.0f}%" for reason, weight in seen.items())


def host_line(history: DeviceHistory) -> dict[str, Any]:
    """Return the last figures of the host, as text."""
    host, job = history.at(history.last, "host"), history.at(history.last, "job")
    total = number(history.about.get("mem"))
    return {
        "cpu": _percent(number(host.get("cpu"))),
        "memory": f"{size(number(host.get('mem')))} / {size(total)}",
        "disk": size(number(host.get("disk_free"))),
        "net": f"↓ {size(number(host.get('net_rx')))}/s ↑ {size(number(host.get('net_tx')))}/s",
        "job_cpu": f"{number(job.get('cpu')):.2f}" if math.isfinite(number(job.get("cpu"))) else ABSENT,
        "job_memory": size(number(job.get("mem"))),
        "job_io": f"↓ {size(number(job.get('read')))}/s ↑ {size(number(job.get('write')))}/s",
    }


def _mean(values: Floats) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else math.nan


def _most(values: Floats) -> float:
    return float(np.nanmax(values)) if np.isfinite(values).any() else math.nan


def _percent(value: float) -> str:
    return f"{value:.0f}%" if math.isfinite(value) else ABSENT
