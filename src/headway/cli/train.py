"""`headway train`: the way of a run, end to end."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click
from rich.console import Console

from headway.cli.bilingual import command, option
from headway.cli.check import show_machine, show_notes
from headway.cli.cpu import cpu_of
from headway.cli.go import describe_command, detach_run, nursery_for, supervise
from headway.cli.plan import show_plan
from headway.cli.source import load_words
from headway.config import LoadedConfig, dump_yaml
from headway.errors import CheckError
from headway.machine import MachineReport, check_mindspore, inspect_machine, read_mindspore, with_cpu, with_mindspore
from headway.messages import say
from headway.planner import Plan, Standing, fit_preset, has_trace, look_ahead, make_plan
from headway.telemetry import EventLog, RunDir, make_lease, new_run_dir, write_json
from headway.ui.console_safe import make_console
from headway.ui.output import unblocked


@command(
    "train",
    help="cli/train-help",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[WHAT] [KEY=VALUE]…")
@option("--detach", is_flag=True, help="cli/option-detach")
@option("--dry-run", is_flag=True, help="cli/option-dry-run")
@option("--trace/--no-trace", default=None, help="cli/option-trace")
@unblocked
def train(words: tuple[str, ...], detach: bool, dry_run: bool, trace: bool | None) -> int:
    """See the message `cli/train-help`."""
    loaded = load_words(words, is_order=True)
    console = make_console(stderr=True)
    # Importing the framework takes longer than everything else here, so it starts first and goes on beside it.
    nursery = None if dry_run or detach else nursery_for(loaded)
    try:
        prepare_data(loaded, console)
        loaded, machine, plan = check_and_plan(loaded, console, trace=trace)
        if dry_run:
            return 0
        run = make_run(loaded, machine, plan)
        console.print(say("console/run-made", run=run.root), style="dim")
        if nursery is None:
            return detach_run(run)
        return supervise(run, nursery, sys.stderr)
    finally:
        if nursery is not None:
            nursery.close()


def prepare_data(loaded: LoadedConfig, console: Console) -> None:
    """Let the recipe make or check its data on disk."""
    if loaded.recipe.prepare is not None:
        module = importlib.import_module(loaded.recipe.prepare)
        module.prepare(loaded.config.task, lambda text: console.print(text, style="dim", markup=False))


def check_and_plan(
    loaded: LoadedConfig,
    console: Console,
    before: Plan | None = None,
    done: Standing | None = None,
    *,
    trace: bool | None = None,
) -> tuple[LoadedConfig, MachineReport, Plan]:
    """Show the machine and the plan; refuse what cannot run. A run that continues keeps the batch it had before.

    The config comes back with the micro-batch that its preset means on this machine.

    Args:
        trace: forecast memory by a trace; none: on GPUs, where the recipe has no formula.
    """
    machine = inspect_machine(Path(loaded.config.out), config=loaded.config)
    if loaded.framework == "mindspore":
        found = read_mindspore(loaded.config.env.python)
        check_mindspore(found)
        machine = with_mindspore(machine, found)
    machine = with_cpu(machine, cpu_of(loaded), loaded.config.train.precision)
    show_machine(machine, console)
    stops = sum(finding.level == "stop" for finding in machine.findings)
    if stops:
        raise CheckError("machine/stopped", num=stops)
    loaded = loaded if before is not None else fit_preset(loaded, machine)
    plan = make_plan(loaded, machine, loaded.recipe, before=before, done=done or Standing())
    if trace is None:
        # A step that does not fit would end the run minutes from now; the trace that tells is kept for the next time.
        trace = bool(plan.gpus) and loaded.recipe.shape is None and loaded.framework == "torch"
    if trace and not has_trace(plan, loaded.config):
        console.print(say("cli/tracing"), style="dim", markup=False)
    plan, _ = look_ahead(plan, loaded, machine, loaded.recipe, trace=trace)
    console.print()
    show_notes((("warn", code, facts) for code, facts in loaded.warnings), console)
    show_plan(plan, loaded.recipe.name, console)
    return loaded, machine, plan


def make_run(loaded: LoadedConfig, machine: MachineReport, plan: Plan) -> RunDir:
    """Write everything that is decided into a new run directory."""
    run = new_run_dir(Path(loaded.config.out), loaded.config.name or loaded.recipe.name)
    write_decisions(run, loaded, machine, plan)
    log = EventLog(run.events)
    log.append("run_started", command=describe_command()["argv"], starter=make_lease())
    log.append("checked", findings=[finding.to_json() for finding in machine.findings])
    log.append("planned", steps=plan.total_steps, world_size=plan.world_size)
    for code, facts in (*loaded.warnings, *((warning.code, warning.facts) for warning in plan.warnings)):
        log.append("warning", code=code, facts=facts)
    baselines = loaded.recipe.baselines(loaded.config.task) if loaded.recipe.baselines else {}
    if baselines:
        log.append("baseline", measures=baselines)
    log.close()
    return run


def write_decisions(run: RunDir, loaded: LoadedConfig, machine: MachineReport, plan: Plan) -> None:
    """Write config, origins, machine, plan, command and the ranks' job."""
    run.config.write_text(dump_yaml(loaded.config), encoding="utf-8")
    write_json(run.origins, loaded.origins)
    write_json(run.machine, machine.to_json())
    write_json(run.plan, plan.to_json())
    write_json(run.command, describe_command())
    job = {
        "schema": "job/1",
        "recipe": loaded.config.recipe,
        "task": loaded.recipe.task,
        "config": loaded.config.model_dump(mode="json"),
        "plan": plan.to_json(),
    }
    write_json(run.job, job)
