"""Looking at a run again and again until it is over."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.live import Live

from headway.telemetry import RunDir
from headway.ui.screen.watch import View, look, render


def show(content: RenderableType, plain_width: int = 200) -> None:
    """Print one thing; where there is no terminal, lines may be `plain_width` long."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = plain_width
    console.print(content)


def follow(run: RunDir, emit: Callable[[View], None] | None, every_s: float) -> bool:
    """Show the run at every look until it is over, live on the terminal without `emit`; return False after Ctrl-C."""
    try:
        if emit is None:
            console = Console(highlight=False, markup=False, emoji=False)
            with Live(render(look(run)), console=console, auto_refresh=False) as live:
                _repeat(run, lambda view: live.update(render(view), refresh=True), every_s)
        else:
            _repeat(run, emit, every_s)
    except KeyboardInterrupt:
        return False
    return True


def _repeat(run: RunDir, emit: Callable[[View], None], every_s: float) -> None:
    # A run that ends between two long looks is noticed within a second.
    shown_s = -every_s
    while True:
        view = look(run)
        is_over = view.state.state != "running"
        if is_over or time.monotonic() - shown_s >= every_s:
            emit(view)
            shown_s = time.monotonic()
        if is_over:
            return
        time.sleep(min(every_s, 1.0))
