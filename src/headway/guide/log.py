"""The log a guide promises: every line of the screen, in a file of the guide's own name."""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TextIO

Level = Literal["INFO", "WARN", "SUCCESS", "ERROR"]
_LEVELS: dict[str, Level] = {"error: ": "ERROR", "错误：": "ERROR", "! ": "WARN"}
"""How a command behind the guide's begins a line that is more than information."""


class GuideLog:
    """Writes each line to the screen and to the log file the guide promises."""

    def __init__(self, path: Path, *, mode: Literal["a", "x"] = "a", is_levelled: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file: TextIO = path.open(mode, encoding="utf-8")
        self._lock = threading.RLock()  # a signal's handler may write while this thread does
        self._is_levelled = is_levelled
        self.last: list[str] = []
        """The newest lines, for whoever has to say what went wrong."""

    @classmethod
    def of_now(cls, folder: Path, name: str, *, is_levelled: bool = False) -> GuideLog:
        """Begin the log of one command, named after this second; a second command in the same second gets its own."""
        wanted = folder / f"{name}_{time.strftime('%Y%m%d_%H%M%S')}.log"
        for path in free_names(wanted):
            with contextlib.suppress(FileExistsError):
                return cls(path, mode="x", is_levelled=is_levelled)
        raise AssertionError("the names have no end")

    def write(self, line: str, level: Level = "INFO") -> None:
        """Write one line; in a log of levels it gets its own and the time, unless it has them."""
        with self._lock:
            for one in line.split("\n"):
                self._write(self._with_level(one.rstrip(), level) if self._is_levelled else one.rstrip())

    def _write(self, line: str) -> None:
        self.last = [*self.last[-199:], line]
        for stream in (sys.stdout, self._file):
            stream.write(f"{line}\n")
            stream.flush()

    def keep(self, line: str) -> None:
        """Write one line to the file alone: the screen gets it from elsewhere."""
        with self._lock:
            for one in line.split("\n"):
                self._file.write(f"{self._with_level(one, 'INFO') if self._is_levelled else one}\n")
            self._file.flush()

    @staticmethod
    def _with_level(line: str, level: Level) -> str:
        level = next((own for start, own in _LEVELS.items() if level == "INFO" and line.startswith(start)), level)
        return f"[{level}] {time.strftime('%Y-%m-%d %H:%M:%S')} {line}"

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def free_names(wanted: Path) -> Iterator[Path]:
    """Yield a name and then the same one with a number, for as long as somebody else has it."""
    yield wanted
    for number in itertools.count(2):
        yield wanted.with_name(f"{wanted.stem}_{number}{wanted.suffix}")


def write(line: str) -> None:
    """Write one line to the screen at once, for commands that keep no log."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
