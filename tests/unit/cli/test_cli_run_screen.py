"""What a foreign run looks like on a terminal, and in a file where nobody looks."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
from pathlib import Path

import pytest

from headway.ui.terminal.run_screen import LineScreen as RunScreen
from headway.ui.text import cell_width


@pytest.mark.parametrize("columns", [40, 200])
@pytest.mark.parametrize("text", ["x" * 300, "训练" * 150])
def test_a_bar_never_takes_more_columns_than_the_terminal_has(columns: int, text: str) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(theirs, "w", encoding="utf-8") as err:
        screen = RunScreen(io.StringIO(), err, 1)
        screen.bar(0, text.encode())
        screen.tick([])
        shown = os.read(ours, 4096).decode()
    os.close(ours)
    assert shown.startswith("\r") and "\n" not in shown
    assert columns - 3 <= cell_width(shown.removeprefix("\r").removesuffix("\x1b[K")) < columns


def print_much(screen: RunScreen) -> None:
    for number in range(3000):
        screen.line(0, b"line %d " % number + b"x" * 100)
        if number % 100 == 0:
            screen.tick([])
    screen.close()


def test_in_the_background_only_the_beginning_of_the_output_is_copied() -> None:
    out = io.StringIO()
    print_much(RunScreen(out, io.StringIO(), 1, log=Path("runs/a/log")))
    assert out.getvalue().startswith("line 0 ")
    assert 60_000 < len(out.getvalue()) < 70_000
    assert out.getvalue().endswith("further output is written only to runs/a/log\n")


def test_once_the_terminal_is_closed_the_output_is_not_copied_without_end_either() -> None:
    out = io.StringIO()
    screen = RunScreen(out, io.StringIO(), 1)
    screen.event({"kind": "warning", "code": "launch/terminal-closed", "facts": {"run": "a"}})
    print_much(screen)
    assert len(out.getvalue()) < 70_000


def test_on_a_terminal_all_lines_are_shown() -> None:
    out = io.StringIO()
    print_much(RunScreen(out, io.StringIO(), 1))
    assert len(out.getvalue()) > 300_000
