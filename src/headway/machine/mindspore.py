"""Whether the ranks' interpreter has MindSpore, and a numpy it can work with. Nothing of either is imported."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from headway.ask import ask
from headway.errors import CheckError
from headway.machine.cpu import cpu_environment
from headway.machine.record import Finding, MachineReport

_DEADLINE_S: Final = 60.0
_TRY_S: Final = 300.0
_OF_TORCH: Final = ("machine/torch-missing", "machine/torch-cpu-build", "machine/torch-cannot-gpu")
"""Findings that say nothing about a run that trains with MindSpore."""
_ASK: Final = """
import json
from importlib.metadata import PackageNotFoundError, version

def ask(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None

print(json.dumps({name: ask(name) for name in ("mindspore", "numpy")}))
"""


@dataclass(frozen=True, slots=True)
class MindSpore:
    """What an interpreter has."""

    python: str
    mindspore: str | None
    numpy: str | None


def read_mindspore(python: str | None = None) -> MindSpore:
    """Ask an interpreter, in a child process, which MindSpore and numpy it has."""
    python = python or sys.executable
    try:
        told = ask(python, {}, source=_ASK, within_s=_DEADLINE_S)
    except OSError as err:
        raise CheckError("machine/python-broken", python=python, why=str(err)[:200]) from err
    if not isinstance(told.value, dict):
        why = f"> {_DEADLINE_S:.0f} s" if told.exit_code is None else told.why
        raise CheckError("machine/python-broken", python=python, why=why)
    return MindSpore(python, told.value["mindspore"], told.value["numpy"])


def made_for_mindspore() -> str | None:
    """Return the interpreter that the set-up makes beside its own environment, where it is there."""
    place = Path(sys.prefix).parent / ".venv-mindspore" / "bin" / "python"
    return str(place) if place.exists() else None


def other_python() -> str | None:
    """Return the interpreter for MindSpore's ranks where nobody named one and this one has no MindSpore."""
    return None if importlib.util.find_spec("mindspore") else made_for_mindspore()


def check_mindspore(found: MindSpore) -> None:
    """Refuse an interpreter that cannot train with MindSpore."""
    if found.mindspore is None:
        raise CheckError("mindspore/missing", python=found.python, other=made_for_mindspore() or "…")
    # With numpy 2 MindSpore only warns on import and then fails oddly in convolutions and indexing.
    if found.numpy is not None and int(found.numpy.partition(".")[0]) >= 2:
        raise CheckError("mindspore/numpy", mindspore=found.mindspore, numpy=found.numpy)


def with_mindspore(report: MachineReport, found: MindSpore) -> MachineReport:
    """Return the report of a machine for a run that trains with MindSpore: its findings instead of torch's."""
    others = tuple(finding for finding in report.findings if finding.code not in _OF_TORCH)
    try:
        check_mindspore(found)
    except CheckError as refused:
        own = Finding(code=refused.code, level="stop", facts=refused.facts)
    else:
        facts = {"mindspore": found.mindspore, "numpy": found.numpy, "python": found.python}
        own = Finding(code="mindspore/ready", level="ok", facts=facts)
    return replace(report, findings=(*others, own))


def mindspore_target(report: MachineReport, asked: str) -> str:
    """Return MindSpore's name of the device a run would use here: what was asked for, or what there is."""
    if asked != "auto":
        return asked
    return "Ascend" if report.npus else "GPU" if any(not gpu.lost for gpu in report.gpus) else "CPU"


def try_mindspore(found: MindSpore, target: str) -> Finding:
    """Let MindSpore compute something on a device (`CPU`, `GPU`, `Ascend`), in a process of its own."""
    environ = cpu_environment(found.python, "mindspore", is_on_cpu=target == "CPU")
    question = {"target": target}
    told = ask(found.python, question, module="headway.engine.mindspore.try_device", within_s=_TRY_S, env=environ)
    if told.value == {"works": True}:
        return Finding(code="mindspore/computes", level="ok", facts={"target": target})
    why = f"no answer within {_TRY_S:.0f} s" if told.exit_code is None else (told.value or {}).get("why", told.why)
    facts = {"target": target, "mindspore": found.mindspore or "n/a", "why": why}
    return Finding(code="mindspore/device", level="stop", facts=facts)
