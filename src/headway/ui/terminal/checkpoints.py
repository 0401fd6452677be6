"""A run's checkpoints as a table."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from headway.messages import language, say, speak
from headway.units import ABSENT, size


def render_checkpoints(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return one line per checkpoint. Any: facts as `ckpt list --json` prints them."""
    table = Table(box=None)
    for head in ("step", "size", "ranks", "saved"):
        table.add_column(say(f"checkpoint/head-{head}"), justify="right", no_wrap=True)
    table.add_column(say("checkpoint/head-note"), overflow="fold")
    for row in rows:
        saved = ABSENT if row["time"] is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["time"]))
        ranks = ABSENT if row["world_size"] is None else str(row["world_size"])
        table.add_row(str(row["step"]), size(row["bytes"]), ranks, saved, Text(_note(row)))
    return table


def _note(row: Mapping[str, Any]) -> str:
    if row["error"] is not None:
        return say("checkpoint/note-broken", why=row["error"])
    notes = [
        say(f"checkpoint/note-{what}")
        for what, is_so in (("best", row["is_best"]), ("suspect", row["suspect"]))
        if is_so
    ]
    return speak(notes, language(), "list") if notes else ""
