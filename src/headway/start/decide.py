"""A config becomes a decision: its data is there, the machine is checked, the plan is made."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headway.config import LoadedConfig
from headway.errors import CheckError
from headway.machine import MachineReport, check_mindspore, inspect_machine, read_mindspore, with_cpu, with_mindspore
from headway.messages import say
from headway.planner import Plan, Standing, fit_preset, has_trace, look_ahead, make_plan
from headway.start.nursery import Tell, cpu_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to run, where and how."""

    loaded: LoadedConfig
    """With the micro-batch that its preset means on this machine."""
    machine: MachineReport
    plan: Plan
    done: Standing
    """What the run has done already, where it continues."""
    checkpoint: Path | None = None
    """The one it continues from; none: it has not saved one, or is new."""


class Screen(Protocol):
    """Whoever shows what is found and decided, as it comes."""

    def tell(self, text: str) -> None:
        """Show one line on the way."""
        ...

    def machine(self, report: MachineReport) -> None:
        """Show the machine and its findings."""
        ...

    def plan(self, loaded: LoadedConfig, plan: Plan) -> None:
        """Show the plan, and what in the config is probably not wanted."""
        ...


def prepare_data(loaded: LoadedConfig, tell: Tell) -> None:
    """Let the recipe make or check its data on disk."""
    if loaded.recipe.prepare is not None:
        importlib.import_module(loaded.recipe.prepare).prepare(loaded.config.task, tell)


def decide(
    loaded: LoadedConfig,
    screen: Screen,
    *,
    trace: bool | None = None,
    before: Plan | None = None,
    done: Standing | None = None,
) -> Decision:
    """Check the machine and make the plan; refuse what cannot run.

    Args:
        trace: forecast memory by a trace; none: on GPUs, where the recipe has no formula.
        before: the plan of a run that continues, which keeps its batch.
        done: what that run has done.
    """
    prepare_data(loaded, screen.tell)
    machine = look_at_machine(loaded, screen.tell)
    screen.machine(machine)
    refuse_stops(machine)
    loaded = loaded if before is not None else fit_preset(loaded, machine)
    done = done or Standing()
    plan = make_plan(loaded, machine, loaded.recipe, before=before, done=done)
    if trace is None:
        # A step that does not fit would end the run minutes from now; the trace that tells is kept for the next time.
        trace = bool(plan.gpus) and loaded.recipe.shape is None and loaded.framework == "torch"
    if trace and not has_trace(plan, loaded.config):
        screen.tell(say("cli/tracing"))
    plan, _ = look_ahead(plan, loaded, machine, loaded.recipe, trace=trace)
    screen.plan(loaded, plan)
    return Decision(loaded=loaded, machine=machine, plan=plan, done=done)


def look_at_machine(loaded: LoadedConfig, tell: Tell) -> MachineReport:
    """Return what is here for the config's framework."""
    machine = inspect_machine(Path(loaded.config.out), config=loaded.config)
    if loaded.framework == "mindspore":
        found = read_mindspore(loaded.config.env.python)
        check_mindspore(found)
        machine = with_mindspore(machine, found)
    return with_cpu(machine, cpu_of(loaded, tell), loaded.config.train.precision)


def refuse_stops(machine: MachineReport) -> None:
    """Refuse a machine on which the run cannot start."""
    stops = sum(finding.level == "stop" for finding in machine.findings)
    if stops:
        raise CheckError("machine/stopped", num=stops)
