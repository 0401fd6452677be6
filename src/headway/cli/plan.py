"""`headway plan`: how a run would be laid out on this machine."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from headway.cli.bilingual import command, echo_json, option
from headway.cli.check import show_notes
from headway.cli.source import load_words
from headway.config import RunConfig
from headway.errors import PlanError, UsageError
from headway.machine import MachineReport, find_machine
from headway.messages import say
from headway.planner import (
    SHARES,
    Model,
    Plan,
    fill_memory,
    find_card,
    fit_preset,
    imagine,
    imagine_cards,
    label_text,
    list_holders,
    look_ahead,
    make_plan,
    origin_text,
    speed_up,
    study_model,
    value_text,
)
from headway.ui.console_safe import make_console
from headway.units import short, size


@command(
    "plan", help="plan/help", context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[SOURCE] [KEY=VALUE]…")
@option("--machine", "record", default=None, type=click.Path(path_type=Path), help="machine/help-machine")
@option("--on", "wanted", default=None, help="machine/help-on")
@option("--script", "script", default=None, help="plan/help-script")
@option("--model", "model_name", default=None, help="plan/help-model")
@option("--trace/--no-trace", default=None, help="plan/help-trace")
@option("--probe", is_flag=True, help="plan/help-probe")
@option("--what-if", "what_if", is_flag=True, help="plan/help-what-if")
@option("--json", "as_json", is_flag=True, help="plan/help-json")
def plan(
    words: tuple[str, ...],
    record: Path | None,
    wanted: str | None,
    script: str | None,
    model_name: str | None,
    trace: bool | None,
    probe: bool,
    what_if: bool,
    as_json: bool,
) -> None:
    """See the message `plan/help`."""
    if model_name is not None:
        if script is not None:
            raise UsageError("plan/model-and-script")
        beside = importlib.import_module("headway.cli.plan_model")
        beside.plan_model(model_name, words, record=record, wanted=wanted, as_json=as_json)
        return
    if script is not None:
        if words:
            raise UsageError("plan/script-and-source", words=shlex.join(words))
        # The reader of launch lines is imported only where there is a line.
        beside = importlib.import_module("headway.cli.plan_script")
        beside.plan_script(script, record=record, wanted=wanted, as_json=as_json)
        return
    loaded = load_words(words)
    machine = find_machine(Path(loaded.config.out), loaded.config, record=record, wanted=wanted)
    loaded = fit_preset(loaded, machine)
    made = make_plan(loaded, machine, loaded.recipe)
    if probe:
        if record is not None or wanted is not None:
            raise UsageError("plan/probe-elsewhere")
        # A plan must be there at once; what starts ranks is imported only where ranks are started.
        importlib.import_module("headway.cli.tune").probe_first(loaded, machine, made)
        made = make_plan(loaded, machine, loaded.recipe)  # now that its data is there
    if trace is None:
        # Without a formula only a trace can tell; it is kept, so the next plan has it at once.
        trace = loaded.recipe.shape is None and loaded.framework == "torch"
    made, model = look_ahead(made, loaded, machine, loaded.recipe, trace=trace)
    if as_json:
        echo_json(made.to_json(), indent=2)
        return
    show_notes((("warn", code, facts) for code, facts in loaded.warnings), make_console(stderr=True))
    console = make_console()
    show_plan(made, loaded.recipe.name, console)
    if what_if and model is not None:
        show_holders(made, console)

        def study(other: Plan, config: RunConfig) -> Model | None:
            try:
                return study_model(other, config, machine, loaded.recipe, trace=trace)
            except PlanError:  # one row less in a table of what else could be
                return None

        show_variants(made, loaded.config, machine, model, console, study)
    click.echo(say("plan/next", args=shlex.join(words)).rstrip())


def show_plan(made: Plan, recipe: str, console: Console) -> None:
    """Print every quantity with where it came from, then what is probably not wanted."""
    table = Table(title=say("plan/title", recipe=recipe), title_justify="left", title_style="bold", box=None)
    table.add_column(say("plan/column-what"), style="cyan", no_wrap=True)
    table.add_column(say("plan/column-value"), overflow="fold")
    table.add_column(say("plan/column-origin"), style="dim", overflow="fold")
    for row in made.rows:
        table.add_row(label_text(row), value_text(row), origin_text(row))
    console.print(table)
    console.print()
    show_notes((("warn", warning.code, warning.facts) for warning in made.warnings), console)


def show_holders(made: Plan, console: Console) -> None:
    """Print who holds a rank's memory at its peak."""
    if made.forecast is None:
        return
    table = Table(
        title=say("plan/holders-title"), title_justify="left", title_style="bold", box=None, show_header=False
    )
    table.add_column(style="cyan")
    table.add_column(justify="right")
    for name, held in list_holders(made.forecast):
        table.add_row(say(f"plan/holder-{name}"), size(held))
    console.print(table)
    console.print()


def show_variants(
    made: Plan,
    config: RunConfig,
    machine: MachineReport,
    model: Model,
    console: Console,
    study: Callable[[Plan, RunConfig], Model | None] | None = None,
) -> None:
    """Print what other settings would take and give, and what more ranks would."""
    table = Table(title=say("plan/whatif-title"), title_justify="left", title_style="bold", box=None)
    table.add_column(say("plan/column-change"), style="cyan")
    table.add_column(say("plan/column-memory"))
    table.add_column(say("plan/column-rate"), justify="right")
    for one in imagine(made, config, machine, model, study):
        found = one.forecast
        used, have = size(found.used_bytes), size(found.device_bytes)
        memory = say(f"plan/value-memory-{found.verdict}", used=used, have=have)
        table.add_row(one.change, memory, short(found.speed.samples_s) if found.speed else say("plan/value-none"))
    for name, share in SHARES.items():
        filled = fill_memory(made, config, machine, model, share)
        if filled is not None:
            changed, found = filled
            memory = say("plan/value-memory-share", used=size(found.used_bytes), share=f"{share:.0%}", name=name)
            change = f"batch.per_device={changed.micro_batch} batch.accumulation={changed.accumulation}"
            table.add_row(change, memory, short(found.speed.samples_s) if found.speed else say("plan/value-none"))
    console.print(table)
    console.print()
    card = next((find_card(gpu) for gpu in machine.gpus if gpu.physical in made.gpus), None)
    if card is None:
        return
    table = Table(
        title=say("plan/cards-title", num=made.world_size), title_justify="left", title_style="bold", box=None
    )
    for code in ("plan/column-card", "plan/column-memory", "plan/column-rate"):
        table.add_column(say(code))
    for other, verdict, speed in imagine_cards(made, config, model):
        used = size((made.forecast or {}).get("used_bytes"))
        memory = say(f"plan/value-memory-{verdict}", used=used, have=size(other.memory_bytes))
        table.add_row(other.name, memory, short(speed.samples_s))
    console.print(table)
    console.print()
    table = Table(title=say("plan/speedup-title"), title_justify="left", title_style="bold", box=None)
    for code in ("plan/column-ranks", "plan/column-rate", "plan/column-speedup"):
        table.add_column(say(code), justify="right")
    rates = speed_up(made, config, model, card)
    for ranks, rate in rates.items():
        table.add_row(str(ranks), short(rate), f"{rate / rates[1]:.2f}×")
    console.print(table)
    console.print()
