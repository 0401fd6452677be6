"""Looking at a run again and again until it is over."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final, NoReturn

from rich.console import Console, RenderableType
from rich.live import Live

from headway.telemetry import RunDir
from headway.ui.console_safe import make_console
from headway.ui.terminal.watch import View, look, render

_SHOW, _HIDE = b"\x1b[?25h", b"\x1b[?25l"
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class _EndedBySignal(BaseException):
    """A signal that would have ended us at once, with the cursor still hidden."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


def columns(plain_width: int = 200) -> int:
    """Return how wide a line may be; where there is no terminal, `plain_width`."""
    console = make_console()
    return console.width if console.is_terminal else plain_width


def show(content: RenderableType, plain_width: int = 200) -> None:
    """Print one thing; where there is no terminal, lines may be `plain_width` long."""
    console = make_console()
    console.width = columns(plain_width)
    console.print(content)


def follow(run: RunDir, emit: Callable[[View], None] | None, every_s: float) -> bool:
    """Show the run at every look until it is over, live on the terminal without `emit`; return False after Ctrl-C."""
    try:
        if emit is None:
            _follow_live(run, every_s)
        else:
            _repeat(run, emit, every_s)
    except KeyboardInterrupt:
        return False
    return True


def _follow_live(run: RunDir, every_s: float) -> None:
    console = make_console()
    try:
        with (
            _cursor_kept(console),
            Live(render(look(run)), console=console, auto_refresh=False) as live,
        ):
            _repeat(run, lambda view: live.update(render(view), refresh=True), every_s)
    except _EndedBySignal as end:
        # The screen is in order again: end as the signal would have ended us.
        signal.signal(end.signum, signal.SIG_DFL)
        os.kill(os.getpid(), end.signum)


@contextlib.contextmanager
def _cursor_kept(console: Console) -> Iterator[None]:
    """While the live view hides the cursor, let no signal leave it hidden: neither an end nor Ctrl-Z."""

    def end(signum: int, frame: FrameType | None) -> NoReturn:
        raise _EndedBySignal(signum)

    def pause(signum: int, frame: FrameType | None) -> None:
        _show_cursor(console, _SHOW)
        os.kill(os.getpid(), signal.SIGSTOP)
        # Here we are continued, after `fg`.
        _show_cursor(console, _HIDE)

    wanted = {**dict.fromkeys(_ENDING, end), signal.SIGTSTP: pause}
    # What is ignored (nohup, a shell without job control) stays so.
    heard = {signum: to for signum, to in wanted.items() if signal.getsignal(signum) != signal.SIG_IGN}
    before = {signum: signal.signal(signum, to) for signum, to in heard.items()}
    try:
        yield
    finally:
        _show_cursor(console, _SHOW)  # a signal amid the view's own start leaves nobody else to do it
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _show_cursor(console: Console, code: bytes) -> None:
    # Not through the console: a signal may have come while it was writing, and it would keep the code for later.
    with contextlib.suppress(OSError):
        os.write(console.file.fileno(), code)


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
