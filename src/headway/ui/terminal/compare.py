"""The table of runs side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from headway.messages import say
from headway.ui.compare import Beside
from headway.ui.terminal.progress_line import speed_text
from headway.ui.terminal.runs import measure_text, step_text
from headway.ui.text import clean_text
from headway.units import duration


def render_compared(rows: Sequence[Beside]) -> Table:
    """Return the table: what differs, what came of it, and the difference to the first."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for key in ("name", "settings", "best", "gain", "step", "rate", "time"):
        is_number = key in ("gain", "step", "rate", "time")
        header = Text(say(f"ui/compare-{key}"))
        table.add_column(header, justify="right" if is_number else "left", overflow="fold", no_wrap=is_number)
    for row in rows:
        state = row.state
        settings = "\n".join(f"{key}={value}" for key, value in row.settings.items())
        table.add_row(
            Text(clean_text(state.name)),
            Text(settings or say("ui/compare-same")),
            Text(measure_text(state.best)),
            Text(gain_text(row, rows[0])),
            Text(step_text(state.step, state.total_steps)),
            Text(speed_text(state)),
            Text(duration(_took(row))),
        )
    return table


def gain_text(row: Beside, first: Beside) -> str:
    """Return the difference to the first run, with a word for its direction."""
    gain = row.gain(first)
    if row is first or math.isnan(gain):
        return "–"
    code = "ui/compare-better" if gain > 0 else "ui/compare-worse" if gain < 0 else "ui/compare-equal"
    return say(code, gap=f"{abs(gain):.4g}")


def _took(row: Beside) -> float | None:
    began, ended = row.state.started, row.state.ended
    return ended - began if began is not None and ended is not None else None
