"""A real batch from the loader, before a run depends on it: taken by a child in the ranks' interpreter."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headway.ask import Answer, ask
from headway.machine.cpu import cpu_environment
from headway.machine.record import Finding
from headway.units import duration

_DEADLINE_S = 60.0
_PACKAGES = Path(__file__).parents[2]


def try_batch(python: str, stored: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what the recipe's loader gave. Any: the config as job.json has it."""
    # Ranks of another environment find Headway here, as they will when they train.
    paths = [str(_PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**cpu_environment(python), "PYTHONPATH": os.pathsep.join(paths)}
    question = {"stored": dict(stored)}
    try:
        told = ask(python, question, module="headway.machine.first_batch_child", within_s=_DEADLINE_S, env=env)
    except OSError as err:
        yield Finding(code="machine/batch-failed", level="stop", facts={"why": err.strerror or str(err)})
    else:
        yield judge_batch(told)


def judge_batch(told: Answer) -> Finding:
    """Return what the child's answer means."""
    answer = told.value if told.exit_code == 0 else None
    if not isinstance(answer, dict):
        why = f"> {_DEADLINE_S:.0f} s" if told.exit_code is None else told.why
        return Finding(code="machine/batch-failed", level="stop", facts={"why": why})
    shapes = ", ".join(f"{name} {'×'.join(map(str, shape))}" for name, shape in answer["shapes"].items())
    if answer["broken"]:
        return Finding(code="machine/batch-broken", level="stop", facts={"names": ", ".join(answer["broken"])})
    facts = {"num": str(answer["taken"]), "shapes": shapes or "n/a", "time": duration(answer["seconds"])}
    return Finding(code="machine/batch-ok", level="ok", facts=facts)
