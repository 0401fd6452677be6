"""A plan as tables: its quantities, memory breakdown, what other settings and cards would give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from headway.config import RunConfig
from headway.machine import MachineReport
from headway.messages import say
from headway.planner import (
    SHARES,
    Model,
    Plan,
    fill_memory,
    find_card,
    imagine,
    imagine_cards,
    label_text,
    list_holders,
    origin_text,
    speed_up,
    value_text,
)
from headway.ui.terminal.machine import show_notes
from headway.units import count, short, size


def show_plan(made: Plan, recipe: str, console: Console) -> None:
    """Print every quantity with where it came from, then what is probably not wanted."""
    show_figures(recipe, ((label_text(row), value_text(row), origin_text(row)) for row in made.rows), console)
    show_notes((("warn", warning.code, warning.facts) for warning in made.warnings), console)


def show_figures(title: str, rows: Iterable[tuple[str, str, str]], console: Console) -> None:
    """Print figures: what it is, its value, where it comes from."""
    table = Table(title=say("plan/title", recipe=title), title_justify="left", title_style="bold", box=None)
    table.add_column(say("plan/column-what"), style="cyan", no_wrap=True)
    table.add_column(say("plan/column-value"), overflow="fold")
    table.add_column(say("plan/column-origin"), style="dim", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print()


def show_holders(forecast: Mapping[str, Any] | None, console: Console, *, on_gpu: bool = True) -> None:
    """Print the breakdown of a rank's memory at its peak. Any: a forecast as JSON."""
    if forecast is None:
        return
    table = Table(
        title=say("plan/holders-gpu-title" if on_gpu else "plan/holders-title"),
        title_justify="left",
        title_style="bold",
        box=None,
        show_header=False,
    )
    table.add_column(style="cyan")
    table.add_column(justify="right")
    for name, held in list_holders(forecast):
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
    table.add_column(say("plan/column-gpu-memory" if made.gpus else "plan/column-memory"))
    table.add_column(say("plan/column-rate"), justify="right")
    for one in imagine(made, config, machine, model, study):
        found = one.forecast
        used, have = size(found.used_bytes), size(found.device_bytes)
        memory = say(f"plan/value-memory-{found.verdict}", used=used, have=have)
        is_told = found.speed is not None and found.verdict != "will-not-fit"
        told = short(found.speed.samples_s) if is_told and found.speed else say("plan/value-none")
        table.add_row(one.change, memory, told)
    for name, share in SHARES.items():
        filled = fill_memory(made, config, machine, model, share)
        if filled is not None:
            changed, found = filled
            memory = say("plan/value-memory-share", used=size(found.used_bytes), share=f"{share:.0%}", name=name)
            change = f"batch.per_device={changed.micro_batch} batch.accumulation={changed.accumulation}"
            if changed.batch_samples != made.batch_samples:
                totals = {"now": count(changed.batch_samples), "before": count(made.batch_samples)}
                memory = say("plan/value-other-total", memory=memory, **totals)
            table.add_row(change, memory, short(found.speed.samples_s) if found.speed else say("plan/value-none"))
    console.print(table)
    console.print()
    card = next((find_card(gpu) for gpu in machine.gpus if gpu.physical in made.gpus), None)
    if card is None:
        return
    table = Table(
        title=say("plan/cards-title", num=made.world_size), title_justify="left", title_style="bold", box=None
    )
    for code in ("plan/column-card", "plan/column-gpu-memory", "plan/column-rate"):
        table.add_column(say(code))
    for other, verdict, speed in imagine_cards(made, config, model):
        used = size((made.forecast or {}).get("used_bytes"))
        memory = say(f"plan/value-memory-{verdict}", used=used, have=size(other.memory_bytes))
        told = say("plan/value-none") if verdict == "will-not-fit" else short(speed.samples_s)
        table.add_row(other.name, memory, told)
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
