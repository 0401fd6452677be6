"""The rank's line to its supervisor: one JSON object a line over a pipe."""

from __future__ import annotations

import json
import os
import threading
import traceback
from typing import Any

from headway.errors import HeadwayError
from headway.task import locate_in_recipe


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
