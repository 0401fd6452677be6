"""The live view of a run, rebuilt from its directory at every look."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from headway.messages import language, say, speak
from headway.redact import redact_lines
from headway.telemetry import RunDir, RunState, read_log_tail, run_state
from headway.ui.terminal.progress_line import clock_text, speed_text
from headway.ui.terminal.runs import cause_text, measure_text, state_text, step_text, value_text
from headway.ui.text import clean_text
from headway.units import ABSENT, duration, size

_LOG_BYTES = 16_384
_MOST_LINES = 64
_LATE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the live view shows."""

    state: RunState
    log: tuple[str, ...]
    """Last lines, without anything that could steer a terminal."""


def look(run: RunDir, num_lines: int = 8) -> View:
    """Read what the view shows from the directory."""
    lines = read_log_tail(run.log, _LOG_BYTES).decode("utf-8", "replace").split("\n")
    shown = redact_lines([clean_text(line) for line in lines[-_MOST_LINES:] if line.strip()])
    return View(state=run_state(run), log=tuple(shown[-num_lines:]))


def render(view: View) -> RenderableType:
    """Return the view: state and progress, numbers, ranks, checkpoints, log."""
    state = view.state
    parts: list[RenderableType] = [_progress(state), Text(""), _numbers(state)]
    if state.state == "lost":
        code = "ui/watch-lost" if state.recipe is not None else "ui/watch-lost-line"
        parts += [Text(""), Text(say(code, name=clean_text(state.name)), style="red")]
    if state.cause is not None:
        parts += [Text(""), Text(cause_text(state.cause), style="red")]
    if state.ranks:
        parts += [Text(""), _ranks(state)]
    if view.log:
        log = Text("\n".join(view.log), style="dim", overflow="ellipsis", no_wrap=True)
        parts += [Text(""), Text(say("ui/watch-log"), style="bold"), log]
    title = Text.assemble(clean_text(state.name), "  ", state_text(state.state))
    return Panel(Group(*parts), title=title, title_align="left", padding=(1, 2))


def _progress(state: RunState) -> Table:
    row = Table.grid(padding=(0, 2, 0, 0), expand=True)
    row.add_column(no_wrap=True)
    row.add_column(ratio=1)
    row.add_column(no_wrap=True)
    if state.total_steps is None:
        row.add_row(Text(say("ui/progress-alone", step=state.step)))
        return row
    share = min(100, 100 * state.step // max(1, state.total_steps))
    left = clock_text(state.eta_s) if state.eta_s is not None else ABSENT
    bar = ProgressBar(total=max(1, state.total_steps), completed=min(state.step, state.total_steps))
    row.add_row(
        Text(f"{step_text(state.step, state.total_steps)} {share}%"), bar, Text(f"{say('ui/watch-eta')} {left}")
    )
    return row


def _numbers(state: RunState) -> Table:
    table = Table.grid(padding=(0, 3, 0, 0))
    best = state.best
    kept = [saved for saved in state.checkpoints if saved.is_there]
    rows = [
        ("loss", value_text(state.loss)),
        ("val", measure_text(state.validation)),
        ("best", _best_text(best.name, best.value, best.step) if best else ABSENT),
        ("speed", speed_text(state)),
        ("checkpoints", _list(_saved_text(s.step, s.num_bytes) for s in kept[-3:]) if kept else ABSENT),
        ("attempts", str(state.attempts)),
        ("incidents", str(state.incidents)),
    ]
    for key, value in rows:
        table.add_row(Text(say(f"ui/watch-{key}"), style="dim"), Text(value))
    return table


def _list(items: Iterable[str]) -> str:
    return speak(list(items), language(), "list")


def _best_text(name: str, value: float, step: int) -> str:
    return say("ui/watch-at", name=clean_text(name), value=f"{value:.4g}", step=step)


def _saved_text(step: int, num_bytes: int) -> str:
    return say("ui/watch-saved", step=step, size=size(num_bytes))


def _ranks(state: RunState) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for key in ("rank", "phase", "step", "age"):
        table.add_column(Text(say(f"ui/watch-{key}")), justify="left" if key == "phase" else "right")
    for rank in state.ranks:
        is_late = rank.age_s is not None and rank.age_s > _LATE_S
        age = Text(duration(rank.age_s), style="red" if is_late else "")
        table.add_row(Text(str(rank.rank)), Text(say(f"ui/phase-{rank.phase}")), Text(str(rank.step)), age)
    return table


def one_line(view: View) -> str:
    """Return the view in one line, for where there is no terminal."""
    state = view.state
    parts = [say(f"ui/state-{state.state}")]
    if state.total_steps:
        share = min(100, 100 * state.step // state.total_steps)
        parts.append(say("ui/progress-step", step=state.step, total=state.total_steps, share=share))
    else:
        parts.append(say("ui/progress-alone", step=state.step))
    if state.loss is not None:
        parts.append(say("ui/progress-loss", loss=value_text(state.loss)))
    if state.validation is not None:
        name, value = clean_text(state.validation.name), f"{state.validation.value:.4g}"
        parts.append(say("ui/progress-val", name=name, value=value))
    if state.rate_steps_s is not None:
        parts.append(speed_text(state))
    if state.cause is not None:
        parts.append(cause_text(state.cause))
    if state.eta_s is not None:
        parts.append(say("ui/progress-eta", eta=clock_text(state.eta_s)))
    return " | ".join(parts)
