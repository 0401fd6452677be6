"""Start the process beside a run that sends its alerts and feeds its trackers; it is found by name, as ranks are."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from typing import Any, Final

from headway.launch.history import History
from headway.launch.job import Job, Training
from headway.messages import language
from headway.process import DETACHED, TAG_NAME
from headway.redact import remember_secrets
from headway.telemetry import RunDir, section

_VARIABLE: Final = "HEADWAY_ALERT_TO"
_MODULE: Final = "headway.bridges.keeper"


def start_bridges(run: RunDir, job: Job, history: History) -> None:
    """Start it where anything is to be sent; whatever happens to it, the run continues."""
    names = _alert_names(job)
    if not names and not _settings(job, "track").get("to"):
        return
    # A script that prints its environment must not print these: their names do not say what they are.
    remember_secrets({f"{name}_WEBHOOK_URL": one for name in names for one in os.environ.get(name, "").split()})
    try:
        seen = run.events.stat().st_size
        words = [str(os.getpid()), str(run.root.absolute()), str(seen), language()]
        _spawn([sys.executable, "-P", "-m", _MODULE, *words])
    except OSError as err:
        history.emit("warning", code="alert/not-started", facts={"why": err.strerror or str(err)})


def _alert_names(job: Job) -> list[str]:
    """Return the variables that hold addresses, and addresses."""
    given = _settings(job, "alert").get("to") or ()
    names = [given] if isinstance(given, str) else [str(one) for one in given]
    return [*names, *([_VARIABLE] if os.environ.get(_VARIABLE, "").strip() else [])]


def _settings(job: Job, name: str) -> Mapping[str, Any]:
    """Return a section of the config, or the like beside a launch line. Any: plain JSON."""
    found = job.program.config if isinstance(job.program, Training) else job.beside
    return section(found.get(name))


def _spawn(command: list[str]) -> None:
    """Start it in a session of its own: Ctrl-C is for the supervisor, and it may outlive us by seconds."""
    ties = (TAG_NAME, DETACHED.partition("=")[0])
    os.posix_spawn(
        command[0],
        command,
        {name: value for name, value in os.environ.items() if name not in ties},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGINT, signal.SIGQUIT, signal.SIGTERM],
    )
