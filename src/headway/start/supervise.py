"""Supervise a written run in this process to its end, then let a child write its report."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.launch import Claims, Crew, Job, Lease, Nursery, Observer, Outcome, launch_run
from headway.messages import language
from headway.telemetry import RunDir

_REPORT_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What the report says, for the last lines on a screen."""

    gains: Sequence[Mapping[str, Any]] = ()
    """How the best measure compares with each baseline. Any: plain JSON."""
    trouble: str = ""
    """Why there is no report."""


def supervise(
    run: RunDir,
    nursery: Nursery,
    observer: Observer,
    claims: Claims,
    *,
    job: Job | None = None,
    lease: Lease | None = None,
    crew: Crew | None = None,
) -> Outcome:
    """Run to the end in this process; call it in the main thread.

    Args:
        claims: what the run holds; the nursery lets go of it should we be killed.
        job: with the secrets of a line, which its file leaves out; none: the file has all.
        lease: the run's, where it is held already.
        crew: the other nodes of the run; none: there are none.
    """
    nursery.keep_claims(claims.files())
    return launch_run(run, observer=observer, nursery=nursery, job=job, lease=lease, crew=crew)


def conclude(run: RunDir) -> Conclusion:
    """Let a child learn from the run and write its report.

    A child: numpy, jinja2 and a million steps do not belong into a supervisor, and may not take it with them.
    """
    command = [sys.executable, "-P", "-m", "headway", "--lang", language(), "conclude", str(run.root)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_REPORT_S, check=False, text=True
        )
        if done.returncode == 0:
            return Conclusion(gains=json.loads(done.stdout)["gains"])
        return Conclusion(trouble=done.stderr.strip() or f"exit code {done.returncode}")
    except (OSError, ValueError, subprocess.TimeoutExpired) as err:
        return Conclusion(trouble=str(err))
