"""The table of runs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from headway.messages import say
from headway.redact import redact
from headway.telemetry import Cause, Measure, RunRow
from headway.ui.terminal.progress_line import speed_text
from headway.ui.text import cell_width, clean_text
from headway.units import ABSENT, age, size

_COLUMNS = ("name", "state", "step", "best", "loss", "rate", "age", "size", "cause")
_LEAST_FIRST = ("size", "rate", "loss", "age", "best", "cause", "step")
"""The order in which columns are left out."""
_GAP = 2
_LEAST_CAUSE = 24
"""A cause that is cut to less says nothing."""
STATE_STYLES = {
    "running": ("●", "cyan"),
    "done": ("✓", "green"),
    "stopped": ("■", "yellow"),
    "interrupted": ("■", "yellow"),
    "failed": ("✕", "red"),
    "lost": ("?", "red"),
}


def render_runs(rows: Sequence[RunRow], now: float | None = None, width: int | None = None) -> Table:
    """Return the table, newest first as given; where it is wider than that, what matters least is left out."""
    now = time.time() if now is None else now
    cells = {key: [_cell(key, row, now) for row in rows] for key in _COLUMNS}
    if not any(row.cause for row in rows):
        del cells["cause"]
    head = {key: say(f"ui/runs-{key}") for key in cells}
    wide = {key: max(cell_width(text) for text in (head[key], *map(str, cells[key]))) + _GAP for key in cells}
    if "cause" in wide:
        wide["cause"] = min(wide["cause"], _LEAST_CAUSE)
    for key in _LEAST_FIRST:
        if width is not None and sum(wide[name] for name in cells) > width:
            cells.pop(key, None)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for key in cells:
        is_number = key in ("step", "loss", "rate", "size")
        is_whole = key not in ("cause", "name")
        ratio = 1 if key == "cause" else None
        justify: JustifyMethod = "right" if is_number else "left"
        table.add_column(
            Text(head[key]),
            justify=justify,
            no_wrap=True,
            overflow="ellipsis",
            min_width=wide[key] - _GAP if is_whole else None,
            ratio=ratio,
        )
    for line in zip(*cells.values(), strict=True):
        table.add_row(*line)
    return table


def _cell(key: str, row: RunRow, now: float) -> Text:
    match key:
        case "name":
            return Text(clean_text(row.name))
        case "state":
            return state_text(row.state, row.num_findings)
        case "step":
            return Text(step_text(row.step, row.total_steps))
        case "best":
            return Text(measure_text(row.best))
        case "loss":
            return Text(value_text(row.loss))
        case "rate":
            return Text(speed_text(row))
        case "age":
            return Text(age_text(row.started, now))
        case "size":
            return Text(size(row.checkpoint_bytes) if row.num_checkpoints else ABSENT)
        case _:
            return Text(cause_text(row.cause), style="red")


def cause_text(cause: Cause | None) -> str:
    """Return why a run has failed, in one line of the reader's language."""
    if cause is None:
        return ""
    try:
        text = say(cause.code, **cause.facts)
    except (KeyError, ValueError, ModuleNotFoundError):  # of another version, or not ours
        text = cause.code
    text = redact(clean_text(" ".join(text.split())))
    return text if cause.rank is None else say("ui/cause-rank", rank=cause.rank, text=text)


def state_text(state: str, num_findings: int = 0) -> Text:
    """Return a state with its sign, and how much was found; the words say it all without the colour."""
    sign, colour = STATE_STYLES[state]
    found = f", {say('ui/state-findings', num=num_findings)}" if num_findings else ""
    return Text(f"{sign} {say(f'ui/state-{state}')}{found}", style=colour)


def step_text(step: int, total: int | None) -> str:
    """Return `120/400`, or `120` where nobody knows the end."""
    return str(step) if total is None else f"{step}/{total}"


def measure_text(measure: Measure | None) -> str:
    """Return `bpb 1.654`."""
    return ABSENT if measure is None else f"{clean_text(measure.name)} {measure.value:.4g}"


def value_text(value: float | None) -> str:
    """Return a number in four figures."""
    return ABSENT if value is None else f"{value:.4g}"


def age_text(started: float | None, now: float) -> str:
    """Return how long ago, in one unit."""
    if started is None or not math.isfinite(started):
        return ABSENT
    unit, num = age(now - started)
    return say(f"ui/ago-{unit}", num=num)
