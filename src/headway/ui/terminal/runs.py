"""The table of runs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from headway.messages import say
from headway.telemetry import Measure, RunRow
from headway.ui.terminal.progress_line import speed_text
from headway.ui.text import clean_text
from headway.units import ABSENT, size

STATE_STYLES = {
    "running": ("●", "cyan"),
    "done": ("✓", "green"),
    "stopped": ("■", "yellow"),
    "interrupted": ("■", "yellow"),
    "failed": ("✕", "red"),
    "lost": ("?", "red"),
}


def render_runs(rows: Sequence[RunRow], now: float | None = None) -> Table:
    """Return the table, newest first as given."""
    now = time.time() if now is None else now
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for key in ("name", "state", "step", "best", "loss", "rate", "age", "size"):
        is_number = key in ("step", "loss", "rate", "size")
        table.add_column(Text(say(f"ui/runs-{key}")), justify="right" if is_number else "left", no_wrap=key == "name")
    for row in rows:
        table.add_row(
            Text(clean_text(row.name)),
            state_text(row.state),
            Text(step_text(row.step, row.total_steps)),
            Text(measure_text(row.best)),
            Text(value_text(row.loss)),
            Text(speed_text(row)),
            Text(age_text(row.started, now)),
            Text(size(row.checkpoint_bytes) if row.num_checkpoints else ABSENT),
        )
    return table


def state_text(state: str) -> Text:
    """Return a state with its sign; the word says it all without the colour."""
    sign, colour = STATE_STYLES[state]
    return Text(f"{sign} {say(f'ui/state-{state}')}", style=colour)


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
    ago = max(0.0, now - started)
    for unit, seconds in (("d", 86_400), ("h", 3600), ("min", 60)):
        if ago >= seconds:
            return say(f"ui/ago-{unit}", num=f"{ago / seconds:.0f}")
    return say("ui/ago-s", num=f"{ago:.0f}")
