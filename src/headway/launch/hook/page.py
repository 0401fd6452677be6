"""The supervisor's side of the hook: read the page and the last exception, ask for stacks."""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headway.process import STACKS_SIGNAL

_OWN: Final = struct.Struct("<8sqqqqqqqqq64s")
_OWN_AT: Final = 512
_MOST_BYTES: Final = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class HookPage:
    """What the hook of one rank last wrote."""

    pid: int
    attempt: int
    steps: int
    """Steps of the first optimizer."""
    collectives: int
    """Collectives that Python has begun."""
    entered_ns: int
    """When the one under way was entered, on the monotonic clock; 0: none is."""
    numel: int
    """Elements of its tensor; -1: not known."""
    numel_before: int
    """The same number where a collective of that name had this size before; else -2."""
    optimizers: int
    moved_ns: int
    name: str
    """The last collective's name."""


def read_page(heartbeat: Path) -> HookPage | None:
    """Return the hook's part of a rank's page, or None where no hook has written."""
    try:
        return parse_page(heartbeat.read_bytes())
    except OSError:
        return None


def parse_page(whole: bytes) -> HookPage | None:
    """Return the hook's part of a page."""
    data = whole[_OWN_AT : _OWN_AT + _OWN.size]
    if len(data) < _OWN.size or not data.startswith(b"HWHOOK01"):
        return None
    _, pid, attempt, steps, collectives, entered, numel, before, optimizers, moved, name = _OWN.unpack(data)
    return HookPage(
        pid=pid,
        attempt=attempt,
        steps=steps,
        collectives=collectives,
        entered_ns=entered,
        numel=numel,
        numel_before=before,
        optimizers=optimizers,
        moved_ns=moved,
        name=name.rstrip(b"\0").decode("ascii", "replace"),
    )


def read_error(folder: Path, attempt: int) -> dict[str, Any] | None:
    """Return the uncaught exception that a rank's hook has kept in this attempt."""
    try:
        with (folder / f"error-{attempt}.json").open("rb") as file:
            told = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and isinstance(told.get("type"), str) else None


def hide_in_errors(run_root: Path, hide: Callable[[str], str]) -> None:
    """Write again what hooks have kept of exceptions, each text as `hide` returns it; call it once all ranks are gone.

    The hook works inside a program that is not ours and knows no rules about secrets; the supervisor does.
    """
    for path in (run_root / "ranks").glob("*/error-*.json"):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            told = json.loads(path.read_bytes()[:_MOST_BYTES])
            shown = {name: hide(fact) if isinstance(fact, str) else fact for name, fact in told.items()}
            if shown != told:
                part = path.with_name(f".{path.name}.{os.getpid()}")
                part.write_text(json.dumps(shown), encoding="utf-8")
                part.replace(path)


def ask_for_stacks(page: HookPage) -> None:
    """Let a hooked rank write all its stacks; faulthandler answers even where Python is stuck in C.

    An interpreter that is on its way out has let go of the signal already, and would die of it: it is not asked.
    """
    ask_process_for_stacks(page.pid)


def ask_process_for_stacks(pid: int) -> None:
    """Let a process write its stacks, if it knows how to."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if _catches(pid, STACKS_SIGNAL):
            os.kill(pid, STACKS_SIGNAL)


def _catches(pid: int, signum: int) -> bool:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    caught = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (signum - 1) & 1)
