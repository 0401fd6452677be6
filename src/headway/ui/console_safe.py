"""Rich's console for texts that are not ours: markup is off and control characters are shown."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.segment import Segment

from headway.ui.output import ReaderGone, clean_output, trusted


class SafeConsole(Console):
    """A console that draws with escape sequences of its own and lets none of the text's through."""

    def on_broken_pipe(self) -> None:
        """Leave it to the command's end: rich would end the process with 1."""
        raise ReaderGone

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        # The one place that every text passes before it is written; a control segment is rich's own.
        return super()._render_buffer(
            part if part.control else Segment(clean_output(part.text), part.style) for part in buffer
        )


def make_console(*, stderr: bool = False, stream: TextIO | None = None) -> SafeConsole:
    """Return a console on stdout, on stderr or on a stream."""
    file = stream or (sys.stderr if stderr else sys.stdout)
    return SafeConsole(file=trusted(file), highlight=False, markup=False, emoji=False)
