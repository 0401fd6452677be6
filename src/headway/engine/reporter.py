"""The rank's line to its supervisor: one JSON object a line over a pipe."""

from __future__ import annotations

import json
import math
import os
import threading
import traceback
from collections.abc import Callable
from typing import Any, Final

from headway.errors import HeadwayError
from headway.task import locate_in_recipe

_SAVES_AT_STOP: Final = 2
"""Saves that a stop may have to wait for: the one in flight and its own."""


class Reporter:
    """Sends events, the error that ends a rank, or the word that it is finished."""

    def __init__(self, fd: int) -> None:
        self._fd, self._lock = fd, threading.Lock()

    def event(self, event: dict[str, Any]) -> None:
        """Hand an event to the supervisor, who stamps and keeps it."""
        self._send({"kind": "event", "event": event})

    def error(self, error: BaseException, step: int) -> None:
        """Say what ends this rank."""
        message: dict[str, Any] = {
            "kind": "error",
            "type": type(error).__name__,
            "text": str(error),
            "traceback": "".join(traceback.format_exception(error)),
            "code": None,
            "facts": {},
            "step": step,
        }
        if isinstance(error, HeadwayError):
            message["code"] = error.code
            message["facts"] = {key: str(value) for key, value in error.facts.items()}
            message["exit_code"] = error.exit_code
        elif place := locate_in_recipe(error):
            message["recipe_file"], message["recipe_line"] = place
        self._send(message)

    def finished(self, state: str, step: int) -> None:
        """Say that this rank has done what it was asked to."""
        self._send({"kind": "finished", "state": state, "step": step})

    def _send(self, message: dict[str, Any]) -> None:
        data = (json.dumps(message, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        with self._lock:
            while data:
                data = data[os.write(self._fd, data) :]


def report_saves(reporter: Reporter, *, run: str, grace_s: float) -> Callable[[dict[str, Any]], None]:
    """Return what hands a saver's events on, and warns, once, when saves take longer than a stop leaves time for."""
    is_told = False

    def report(event: dict[str, Any]) -> None:
        nonlocal is_told
        reporter.event(event)
        if event["kind"] != "checkpoint_committed" or is_told or _SAVES_AT_STOP * event["write_s"] <= grace_s:
            return
        is_told = True
        wanted = 10 * math.ceil(_SAVES_AT_STOP * event["write_s"] * 1.5 / 10)
        facts = {"taken": f"{event['write_s']:.0f}", "grace": f"{grace_s:g}", "wanted": wanted, "run": run}
        reporter.event({"kind": "warning", "code": "engine/grace-short", "facts": facts})

    return report
