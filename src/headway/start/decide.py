"""A config becomes a decision: its data is there, the machine is checked, the plan is made."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from headway.config import LoadedConfig
from headway.errors import CheckError
from headway.launch import Claims, Job, training_job
from headway.machine import (
    MachineReport,
    check_mindspore,
    inspect_machine,
    judge_machine,
    pick_devices,
    read_mindspore,
    with_cpu,
    with_mindspore,
)
from headway.messages import say
from headway.planner import Plan, Standing, fit_preset, has_trace, look_ahead, make_plan, needs_trace
from headway.start.devices import claim_planned, mark_claimed
from headway.start.framework import settle_framework
from headway.start.nodes import Assembly
from headway.start.nursery import Tell, cpu_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to run, where and how: a config with its plan, or a launch line of the user's own."""

    job: Job
    out: Path
    """Folder of runs."""
    name: str
    """For the run's directory."""
    machine: MachineReport | None
    """None: the look at it took too long for a launch line."""
    late: Future[MachineReport] | None = None
    """That look, which may still come to an end."""
    loaded: LoadedConfig | None = None
    """With the micro-batch that its preset means on this machine; None: a launch line."""
    plan: Plan | None = None
    done: Standing = field(default_factory=Standing)
    """What the run has done already, where it continues."""
    elsewhere: int = 0
    """Ranks on other nodes."""
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
    claims: Claims,
    *,
    is_dry: bool = False,
    begin: Callable[[LoadedConfig], None] | None = None,
    trace: bool | None = None,
    before: Plan | None = None,
    done: Standing | None = None,
    nodes: Assembly | None = None,
) -> Decision:
    """Check the machine, make the plan and claim its GPUs; refuse what cannot run.

    Args:
        claims: takes the GPUs; whoever holds it releases them.
        is_dry: nothing is to start, so nothing is claimed.
        begin: called first: the framework is imported while the rest is decided.
        trace: forecast memory by a trace; none: on GPUs, where the recipe has no formula.
        before: the plan of a run that continues, which keeps its batch.
        done: what that run has done.
        nodes: the others that take part; none: this one alone.
    """
    if before is None:
        loaded = settle_framework(loaded, screen.tell)
    if begin is not None:
        begin(loaded)
    prepare_data(loaded, screen.tell)
    machine = look_at_machine(loaded, claims, screen.tell)
    screen.machine(machine)
    refuse_stops(machine)
    done = done or Standing()
    on_gpus = nodes is not None and bool(pick_devices(machine, loaded.config.parallel.gpus))
    elsewhere = nodes.settle(loaded, on_gpus=on_gpus) if nodes is not None else 0
    can_be_uneven = loaded.framework == "torch"
    while True:
        chosen = loaded if before is not None else fit_preset(loaded, machine)
        plan = make_plan(
            chosen, machine, chosen.recipe, before=before, done=done, elsewhere=elsewhere, can_be_uneven=can_be_uneven
        )
        changed = None if is_dry else claim_planned(machine, plan.gpus, claims)
        if changed is None:
            break
        # Another run was faster by a moment: plan without what it has taken, unless the config names that GPU.
        machine = _judged(changed, loaded)
        if not isinstance(loaded.config.parallel.gpus, str | int):
            taken = next(gpu for gpu in machine.gpus if gpu.physical in plan.gpus and gpu.claim is not None)
            raise CheckError("run/gpu-claimed", name=taken.physical, holder=taken.claim)
    loaded = chosen
    if trace is None:
        # A step that does not fit would end the run minutes from now; the trace that tells is kept for the next time.
        trace = bool(plan.gpus) and loaded.framework == "torch" and needs_trace(plan, loaded.config, loaded.recipe)
    if trace and not has_trace(plan, loaded.config):
        screen.tell(say("cli/tracing"))
    plan, _ = look_ahead(plan, loaded, machine, loaded.recipe, trace=trace, done=done)
    screen.plan(loaded, plan)
    return Decision(
        job=training_job(loaded.recipe.task, loaded.config, plan),
        out=Path(loaded.config.out),
        name=loaded.config.name or loaded.recipe.name,
        machine=machine,
        loaded=loaded,
        plan=plan,
        done=done,
        elsewhere=elsewhere,
    )


def look_at_machine(loaded: LoadedConfig, claims: Claims, tell: Tell) -> MachineReport:
    """Return what is here for the config's framework; what another run has claimed is not free."""
    found = inspect_machine(Path(loaded.config.out), config=loaded.config)
    machine = mark_claimed(found, claims)
    machine = machine if machine is found else _judged(machine, loaded)
    if loaded.framework == "mindspore":
        mindspore = read_mindspore(loaded.config.env.python)
        check_mindspore(mindspore)
        machine = with_mindspore(machine, mindspore)
    return with_cpu(machine, cpu_of(loaded, tell), loaded.config.train.precision)


def refuse_stops(machine: MachineReport) -> None:
    """Refuse a machine on which the run cannot start."""
    stops = sum(finding.level == "stop" for finding in machine.findings)
    if stops:
        raise CheckError("machine/stopped", num=stops)


def _judged(machine: MachineReport, loaded: LoadedConfig) -> MachineReport:
    return replace(machine, findings=judge_machine(machine, loaded.config))
