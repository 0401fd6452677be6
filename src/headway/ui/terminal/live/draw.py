"""The parts of the live view, as text that fits a width and a height. No part reads anything or asks the terminal."""

from __future__ import annotations

import math
import time

from rich.table import Table
from rich.text import Text

from headway.messages import say
from headway.telemetry import RunRow, RunState, number
from headway.ui.findings import finding_hint, finding_text
from headway.ui.terminal.live.plot import draw_bar, draw_curve
from headway.ui.terminal.live.snapshot import Snapshot
from headway.ui.terminal.progress_line import clock_text, speed_text
from headway.ui.terminal.runs import state_text, step_text
from headway.ui.text import clean_text
from headway.units import ABSENT, age, duration, short, size

UTIL_TARGET, TEMP_TARGET = 90.0, 80.0


def draw_head(view: Snapshot, width: int) -> Text:
    """Return name, verdict, progress and the numbers people ask for first: five lines."""
    state = view.state
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(clean_text(state.name), style="bold")
    text.append("  ")
    text.append_text(state_text(state.state))
    text.append("\n")
    text.append_text(draw_verdict(view))
    text.append("\n")
    text.append_text(_draw_progress(state, width))
    loss = ABSENT if state.loss is None else f"{state.loss:.4g}"
    parts = [f"{say('ui/watch-loss')} {loss}"]
    if state.validation is not None:
        parts.append(f"{say('ui/watch-val')} {clean_text(state.validation.name)} {state.validation.value:.4g}")
    if state.best is not None:
        best = say("ui/watch-at", name="", value=f"{state.best.value:.4g}", step=state.best.step)
        parts.append(f"{say('ui/watch-best')}{best}")
    parts.append(speed_text(state))
    text.append(" · ".join(parts) + "\n")
    kept = [saved for saved in state.checkpoints if saved.is_there]
    saved = say("watch/no-checkpoint")
    if kept:
        unit, num = age(time.time() - kept[-1].t)
        saved = say(
            "watch/checkpoint", step=kept[-1].step, num=len(kept), size=size(sum(one.num_bytes for one in kept))
        )
        saved += f" · {say(f'ui/ago-{unit}', num=num)}" if state.state == "running" else ""
    free = number(view.devices.at(view.devices.last, "host").get("disk_free"))
    text.append(saved + (f" · {say('watch/disk', free=size(free))}" if math.isfinite(free) else ""), style="dim")
    return text


def _draw_progress(state: RunState, width: int) -> Text:
    """Return bar, steps and time left; without a known end there is nothing to draw a bar of."""
    if state.total_steps is None:
        return Text(f"{say('ui/progress-alone', step=state.step)}\n")
    share = state.step / max(1, state.total_steps)
    eta = f" {say('ui/watch-eta')} {clock_text(state.eta_s)}" if state.eta_s is not None else ""
    words = f" {step_text(state.step, state.total_steps)} {min(100, round(100 * share))}%{eta}"
    return Text.assemble((draw_bar(share, max(8, min(60, width - len(words) - 4))), "cyan"), words, "\n")


def draw_verdict(view: Snapshot) -> Text:
    """Return how the run is, in one line."""
    state, num = view.state, sum(not one.is_over for one in view.findings)
    if state.state in ("failed", "lost"):
        words = view.incidents[-1] if view.incidents else str(state.why or "")
        return Text(f"✗ {say(f'ui/state-{state.state}')}: {clean_text(words)}", style="bold red")
    late = [row for row in view.ranks if row.age_s is not None and row.age_s > max(10.0, 5 * (row.step_s or 0))]
    if late and state.state == "running":
        names = ", ".join(str(row.rank) for row in late[:8])
        return Text(f"! {say('watch/late', ranks=names, age=duration(late[0].age_s))}", style="bold yellow")
    if num:
        return Text(f"! {say('watch/findings', num=num)}", style="bold yellow")
    if state.state == "running":
        steps = [row.step_s for row in view.ranks if math.isfinite(row.step_s)]
        if steps and math.isfinite(view.planned_step_s) and view.planned_step_s > 0:
            off = (max(steps) - view.planned_step_s) / view.planned_step_s
            return Text(f"✓ {say('watch/healthy-plan', off=f'{100 * off:+.0f}')}", style="green")
        return Text(f"✓ {say('watch/healthy')}", style="green")
    return Text(f"■ {say(f'ui/state-{state.state}')}", style="green" if state.state == "done" else "")


def draw_curves(view: Snapshot, width: int, height: int, *, is_ascii: bool = False) -> Text:
    """Return loss, validation and speed, as many as fit below each other or side by side."""
    shown = [(say("ui/watch-loss"), view.loss, "cyan")]
    if len(view.validation) > 1:
        shown.append((f"{say('ui/watch-val')} {view.measure}", view.validation, "yellow"))
    if len(view.speed) > 1:
        shown.append((say("watch/speed"), view.speed, "green"))
    shown = [one for one in shown if len(one[1]) > 1][: max(1, height // 4)]
    if not shown:
        return Text(say("watch/no-curve"), style="dim")
    tall = max(2, height // len(shown) - 1)
    text = Text(no_wrap=True)
    for name, values, style in shown:
        text.append(f"{name}  {values[-1]:.4g}\n", style="bold")
        for line in draw_curve(values, width, tall, is_ascii=is_ascii):
            text.append(line + "\n", style=style)
    return text


def draw_devices(view: Snapshot, width: int) -> Table:
    """Return one row per GPU beside its targets; without GPUs one per rank's processes."""
    table = _table()
    history = view.devices
    if history.gpus():
        names = (
            ("gpu", "util", "gpu-memory", "temp", "power", "activity")
            if width >= 70
            else ("gpu", "util", "gpu-memory", "temp")
        )
        for name in names:
            table.add_column(
                Text(say(f"watch/col-{name}"), style="dim"), justify="left" if name in ("gpu", "activity") else "right"
            )
        for index in history.gpus():
            table.add_row(*_gpu_cells(view, index)[: len(names)])
        return table
    for name in ("rank", "cores", "memory"):
        table.add_column(Text(say(f"watch/col-{name}"), style="dim"), justify="right")
    for row in view.ranks:
        cores = f"{row.cores:.2f}" if math.isfinite(row.cores) else ABSENT
        table.add_row(str(row.rank), cores, size(row.memory_bytes))
    return table


def _gpu_cells(view: Snapshot, index: int) -> list[Text]:
    now, about = view.devices.at(view.devices.last, "gpus", index), view.devices.gpu_about(index)
    if now.get("lost"):
        return [Text(str(index)), Text(say("watch/lost"), style="bold red"), *[Text("")] * 4]
    util, temp, power = number(now.get("util")), number(now.get("temp")), number(now.get("power"))
    total, cap = number(about.get("mem")), number(about.get("power_cap"))
    parts = [f"{name} {number(now[name]):.0f}%" for name in ("sm", "tensor", "dram") if name in now]
    reasons = [clean_text(str(one)) for one in now.get("throttle") or ()]
    return [
        Text(f"{index} {clean_text(str(about.get('name') or ''))}"[:24]),
        Text(_or_na(util, "{:.0f}%") + f" ≥{UTIL_TARGET:.0f}", style="yellow" if util < UTIL_TARGET else ""),
        Text(f"{size(number(now.get('mem')))}" + (f"/{size(total)}" if math.isfinite(total) else "")),
        Text(_or_na(temp, "{:.0f} °C") + f" ≤{TEMP_TARGET:.0f}", style="red" if temp > TEMP_TARGET else ""),
        Text(_or_na(power, "{:.0f}") + (f"/{cap:.0f} W" if math.isfinite(cap) else " W")),
        Text(" ".join(parts + reasons), style="dim"),
    ]


def draw_ranks(view: Snapshot, width: int) -> Table:
    """Return one row per rank: where it is, how long a step takes, and what part of it waits."""
    table = _table()
    memory = "gpu-memory" if view.devices.gpus() else "memory"
    names = ("rank", "phase", "step", "age", "time", "data", "comm", "cores", memory)[: 9 if width >= 78 else 7]
    for name in names:
        table.add_column(Text(say(f"watch/col-{name}"), style="dim"), justify="left" if name == "phase" else "right")
    most = max((row.step for row in view.ranks), default=0)
    for row in view.ranks:
        is_late = row.age_s is not None and row.age_s > 10
        cells = [
            Text(str(row.rank)),
            Text(say(f"ui/phase-{row.phase}")),
            Text(str(row.step), style="yellow" if row.step < most - 1 else ""),
            Text(duration(row.age_s) if row.age_s is not None else "", style="red" if is_late else ""),
            Text(duration(row.step_s) if math.isfinite(row.step_s) else ABSENT),
            Text(_or_na(100 * row.shares.get("data", math.nan), "{:.0f}%")),
            Text(_or_na(100 * row.shares.get("comm", math.nan), "{:.0f}%")),
            Text(_or_na(row.cores, "{:.2f}")),
            Text(size(row.memory_bytes)),
        ]
        table.add_row(*cells[: len(names)])
    return table


def draw_findings(view: Snapshot) -> Text:
    """Return what was found, open ones first, with what it cost."""
    if not view.findings and not view.incidents:
        return Text(f"✓ {say('watch/no-findings')}", style="green")
    text = Text()
    for one in view.findings:
        text.append("  " if one.is_over else "! ", style="dim" if one.is_over else "bold yellow")
        text.append(finding_text(one.event()), style="dim" if one.is_over else "")
        lasted = say("watch/over") if one.is_over else say("watch/since", time=_clock(one.since))
        cost = f" · {say('watch/cost', cost=duration(one.cost_s))}" if one.cost_s > 0 else ""
        text.append(f"  ({lasted}{cost})\n", style="dim")
        for line in [] if one.is_over else finding_hint(one.event()):
            text.append(f"    {line}\n", style="dim")
    for words in view.incidents:
        text.append("✗ ", style="bold red")
        text.append(f"{words}\n")
    return text


def draw_checkpoints(view: Snapshot) -> Table:
    """Return the checkpoints, newest first, with the command that resumes from each."""
    table = _table()
    for name in ("step", "size", "stall", "state", "command"):
        table.add_column(
            Text(say(f"watch/col-{name}"), style="dim"), justify="left" if name in ("state", "command") else "right"
        )
    best = view.state.best.step if view.state.best else None
    for saved in reversed(view.state.checkpoints):
        state = say("watch/verified") if saved.is_there else say("watch/removed")
        star = "★ " if saved.step == best else ""
        command = f"headway resume {clean_text(view.state.name)} --step {saved.step}" if saved.is_there else ""
        stall = duration(saved.stall_s) if math.isfinite(saved.stall_s) else ABSENT
        style = "" if saved.is_there else "dim"
        table.add_row(str(saved.step), size(saved.num_bytes), stall, star + state, command, style=style)
    return table


def draw_log(view: Snapshot, wanted: str, height: int) -> Text:
    """Return the last lines that hold a text; `rank:3` leaves those of a rank, `level:error` those with an error."""
    text = Text(no_wrap=True, overflow="ellipsis")
    for line in filter_log(view.log, wanted)[-max(1, height) :]:
        style = "red" if _is_error(line) else "yellow" if "warn" in line.lower() else ""
        text.append(line + "\n", style=style)
    return text


def filter_log(lines: list[str], wanted: str) -> list[str]:
    """Return the lines that all words of a filter leave."""
    for word in wanted.split():
        kind, _, value = word.partition(":")
        if kind == "rank" and value.isdigit():
            lines = [line for line in lines if line.startswith((f"[{value}]", f"rank {value}:"))]
        elif kind == "level" and value:
            lines = [line for line in lines if (_is_error(line) if value == "error" else value in line.lower())]
        else:
            lines = [line for line in lines if word.casefold() in line.casefold()]
    return lines


def _is_error(line: str) -> bool:
    return any(word in line for word in ("Error", "ERROR", "Traceback", "Exception", "FATAL"))


def draw_runs(rows: list[RunRow], chosen: int, height: int) -> Table:
    """Return the runs of a folder with one of them chosen."""
    table = _table()
    for name in ("", "name", "state", "step", "loss", "best", "rate"):
        table.add_column(
            Text(say(f"ui/runs-{name}") if name else "", style="dim"),
            justify="right" if name in ("step", "loss", "best", "rate") else "left",
        )
    first = max(0, min(chosen - height // 2, len(rows) - height))
    for at, row in list(enumerate(rows))[first : first + max(1, height)]:
        best = f"{row.best.value:.4g}" if row.best else ""
        loss = "" if row.loss is None else f"{row.loss:.4g}"
        table.add_row(
            "▶" if at == chosen else "",
            Text(clean_text(row.name), style="bold" if at == chosen else ""),
            state_text(row.state),
            step_text(row.step, row.total_steps),
            loss,
            best,
            short(row.rate_samples_s * (row.tokens_per_sample or 1) if row.rate_samples_s else row.rate_steps_s)
            if row.rate_steps_s
            else "",
        )
    return table


def draw_machine(gpus: list[dict[str, object]], host: dict[str, object]) -> Text:
    """Return this machine now: host in one line, then a line per GPU with who holds it."""
    text = Text(no_wrap=True, overflow="ellipsis")
    total, used = number(host.get("total_mem")), number(host.get("mem"))
    cpu = _or_na(number(host.get("cpu")), "{:.0f}%")
    text.append(f"CPU {cpu} · {say('watch/col-memory')} {size(used)}/{size(total)} · ", style="dim")
    text.append(say("watch/disk", free=size(number(host.get("disk_free")))) + "\n", style="dim")
    if not gpus:
        text.append(say("watch/no-gpus"), style="dim")
    for one in gpus:
        if one.get("lost"):
            text.append(f"GPU {one.get('i')}  {say('watch/lost')}\n", style="bold red")
            continue
        util = number(one.get("util"))
        text.append(f"GPU {one.get('i')} {clean_text(str(one.get('name') or ''))}  ")
        text.append(draw_bar(util / 100, 10) + f" {_or_na(util, '{:.0f}%')}  ", style="cyan")
        text.append(f"{size(number(one.get('mem')))}/{size(number(one.get('total')))}  ")
        text.append(f"{_or_na(number(one.get('temp')), '{:.0f} °C')}  ")
        held = one.get("procs")
        text.append("; ".join(map(str, held)) if isinstance(held, list) else "", style="dim")
        text.append("\n")
    return text


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))


def _or_na(value: float, shape: str) -> str:
    return shape.format(value) if math.isfinite(value) else ABSENT


def _clock(unix: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(unix)) if math.isfinite(unix) else ABSENT
