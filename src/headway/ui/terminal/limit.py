"""How much of what ranks print is shown where nobody looks: their lines are in the run's log already."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from headway.messages import say

_SHOWN_BYTES: Final = 1 << 16
"""Enough to see a start that goes wrong."""


class LineLimit:
    """Lets lines through to a terminal without end, and to a file only at first."""

    def __init__(self, log: Path | None = None) -> None:
        self._log = log
        self._left = _SHOWN_BYTES

    def see(self, event: dict[str, Any]) -> None:
        """Notice that the terminal was closed: from here on the screen is a file."""
        if event.get("code") == "launch/terminal-closed" and self._log is None:
            self._log = Path(str(event.get("facts", {}).get("run", ""))) / "log"

    def take(self, line: str) -> list[str]:
        """Return what to show for a line: itself, a last word in its place, or nothing."""
        if self._log is None:
            return [line]
        if self._left <= 0:
            return []
        self._left -= len(line.encode("utf-8", "replace")) + 1
        return [line] if self._left > 0 else [say("ui/lines-in-log", log=self._log)]
