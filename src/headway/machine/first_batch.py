"""A real batch from the loader, before a run depends on it: taken by a child in the ranks' interpreter."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headway.machine.cpu import cpu_environment
from headway.machine.record import Finding
from headway.units import duration

_DEADLINE_S = 60.0
_PACKAGES = Path(__file__).parents[2]
_MOST_ERROR = 300


def try_batch(python: str, stored: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what the recipe's loader gave. Any: the config as job.json has it."""
    # Ranks of another environment find Headway here, as they will when they train.
    paths = [str(_PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        done = subprocess.run(
            [python, "-P", "-m", "headway.machine.first_batch_child", json.dumps(stored)],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_DEADLINE_S,
            check=False,
            env={**cpu_environment(python), "PYTHONPATH": os.pathsep.join(paths)},
        )
    except subprocess.TimeoutExpired:
        yield Finding(code="machine/batch-failed", level="stop", facts={"why": f"> {_DEADLINE_S:.0f} s"})
        return
    except OSError as err:
        yield Finding(code="machine/batch-failed", level="stop", facts={"why": err.strerror or str(err)})
        return
    yield judge_batch(done.returncode, done.stdout, done.stderr)


def judge_batch(exit_code: int, said: str, errors: str) -> Finding:
    """Return what the child's answer means."""
    lines = said.strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if exit_code == 0 and lines else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        last = (errors.strip() or said.strip()).splitlines()
        why = last[-1][:_MOST_ERROR] if last else f"exit code {exit_code}"
        return Finding(code="machine/batch-failed", level="stop", facts={"why": why})
    shapes = ", ".join(f"{name} {'×'.join(map(str, shape))}" for name, shape in answer["shapes"].items())
    if answer["broken"]:
        return Finding(code="machine/batch-broken", level="stop", facts={"names": ", ".join(answer["broken"])})
    facts = {"num": str(answer["taken"]), "shapes": shapes or "n/a", "time": duration(answer["seconds"])}
    return Finding(code="machine/batch-ok", level="ok", facts=facts)
