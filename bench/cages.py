"""A control group around one process tree, with a limit on memory or on processes; version 1 and 2.

It is made below the group this process is in, so that every limit above it still holds.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

Controller = Literal["memory", "pids"]
_FILES = {"memory": ("memory.limit_in_bytes", "memory.max"), "pids": ("pids.max", "pids.max")}
_ROOT = Path("/sys/fs/cgroup")


class NoCageError(Exception):
    """This machine does not let us make one; says why."""


@contextlib.contextmanager
def cage(controller: Controller, limit: int) -> Iterator[Callable[[], None]]:
    """Make a group with a limit; yields what a child calls between fork and exec to move into it."""
    folder, is_v2 = _make(controller)
    try:
        (folder / _FILES[controller][is_v2]).write_text(str(limit))
        yield lambda: _enter(folder)
    except OSError as err:
        raise NoCageError(f"{folder}: {err}") from err
    finally:
        _remove(folder)


def _make(controller: Controller) -> tuple[Path, bool]:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            parent, is_v2 = _ROOT / controllers / path.lstrip("/"), False
        elif not controllers and (_ROOT / "cgroup.controllers").exists():
            parent, is_v2 = _ROOT / path.lstrip("/"), True
        else:
            continue
        folder = parent / f"headway-bench-{secrets.token_hex(4)}"
        try:
            folder.mkdir()
        except OSError as err:
            raise NoCageError(f"{parent}: {err}") from err
        if not (folder / _FILES[controller][is_v2]).exists():
            folder.rmdir()
            raise NoCageError(f"{parent}: the {controller} controller is not delegated")
        return folder, is_v2
    raise NoCageError(f"no {controller} control group here")


def _enter(folder: Path) -> None:
    with open(folder / "cgroup.procs", "w") as file:
        file.write(str(os.getpid()))


def _remove(folder: Path) -> None:
    for _ in range(200):
        try:
            folder.rmdir()
            return
        except OSError:  # the last process of it is still on its way out
            time.sleep(0.05)
    raise RuntimeError(f"{folder} is still in use")
