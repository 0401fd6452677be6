"""What the bridges have done and could not do, one line each in the run's `bridges.jsonl`."""

from __future__ import annotations

import os
import time
from typing import Any, Final

from headway.redact import redact
from headway.telemetry import RunDir, open_beneath, read_events
from headway.telemetry.lines import encode_line

NAME: Final = "bridges.jsonl"
_MOST_BYTES: Final = 4 << 20


def write_note(run: RunDir, kind: str, **facts: Any) -> None:
    """Add a line; where that fails nobody is to wait for it. Any: plain JSON."""
    hidden = {name: redact(fact) if isinstance(fact, str) else fact for name, fact in facts.items()}
    try:
        fd = open_beneath(run.root / NAME, os.O_WRONLY | os.O_APPEND)
    except OSError:
        return  # the folder is gone or the disk full: the run itself says so
    with open(fd, "ab") as file:
        if file.tell() < _MOST_BYTES:
            file.write(encode_line({"t": round(time.time(), 3), "kind": kind, **hidden}))


def read_notes(run: RunDir) -> list[dict[str, Any]]:
    """Return the lines in order."""
    return read_events(run.root / NAME)
