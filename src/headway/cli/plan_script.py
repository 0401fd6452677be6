"""`headway plan --script`: what a script of the user's own would hold, and how fast it would be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from headway.cli.bilingual import echo_json
from headway.cli.check import show_notes
from headway.cli.script_line import read_script
from headway.errors import PlanError
from headway.machine import find_machine
from headway.messages import say
from headway.planner import ScriptForecast, foresee_script, list_holders
from headway.ui.console_safe import make_console
from headway.units import count, duration, short, size


def plan_script(line: str, *, record: Path | None, wanted: str | None, as_json: bool) -> None:
    """Trace the script of a launch line, print who holds what, and refuse what does not fit."""
    machine = find_machine(Path(), record=record, wanted=wanted)
    num_gpus = sum(not gpu.lost for gpu in machine.gpus)
    found = foresee_script(read_script(line, num_gpus=num_gpus), machine)
    if as_json:
        echo_json(found.to_json(), indent=2)
    else:
        show_script(found, make_console())
    if found.verdict == "will-not-fit":
        raise _refuse(found)
    if not as_json:
        click.echo(say("plan/script-next", line=found.line.text))


def show_script(found: ScriptForecast, console: Console) -> None:
    """Print the forecast and where each figure comes from."""
    table = Table(title=say("plan/title", recipe=found.line.entry), title_justify="left", title_style="bold", box=None)
    table.add_column(say("plan/column-what"), style="cyan", no_wrap=True)
    table.add_column(say("plan/column-value"), overflow="fold")
    table.add_column(say("plan/column-origin"), style="dim", overflow="fold")
    for row in _rows(found):
        table.add_row(*row)
    console.print(table)
    console.print()
    table = Table(
        title=say("plan/holders-title"), title_justify="left", title_style="bold", box=None, show_header=False
    )
    table.add_column(style="cyan")
    table.add_column(justify="right")
    for name, held in list_holders(found.to_json()):
        table.add_row(say(f"plan/holder-{name}"), size(held))
    console.print(table)
    console.print()
    show_notes((("warn", code, facts) for code, facts in _notes(found)), console)


def _rows(found: ScriptForecast) -> Iterator[tuple[str, str, str]]:
    trace, ranks = found.trace, found.line.ranks
    on = found.device or "CPU"
    yield say("plan/row-script-ranks"), str(ranks), on
    kinds = ", ".join(trace.optimizers)
    num = count(trace.trained)
    by_hand = say("plan/script-by-hand", num=num)
    trained = say("plan/script-trained", num=num, optimizers=kinds) if kinds else by_hand
    yield say("plan/row-script-params"), count(trace.params), trained
    if trace.micro_batch is not None:
        samples = trace.micro_batch * trace.accumulation * ranks
        yield say("plan/row-script-batch"), count(samples), f"{trace.micro_batch} × {trace.accumulation} × {ranks}"
    value = say(f"plan/value-memory-{found.verdict}", used=size(found.used_bytes), have=size(found.device_bytes))
    origin = say("plan/from-script", seconds=f"{trace.took_s:.1f}", moment=found.memory.moment)
    yield say("plan/row-memory"), value, f"{origin}; {say('plan/script-whole')}"
    if found.speed is not None:
        origin = say("plan/from-roofline", mfu=f"{found.speed.mfu:.0%}")
        yield say("plan/row-step-time"), duration(found.speed.step_s), origin
        if trace.micro_batch is not None:
            yield say("plan/row-rate"), say("plan/value-rate", rate=short(found.speed.samples_s)), origin


def _notes(found: ScriptForecast) -> Iterator[tuple[str, dict[str, str]]]:
    if not found.trace.on_device and found.line.has_gpus:
        yield "plan/script-on-host", {}
    if "compile" in found.trace.left_out:
        yield "plan/script-compiled", {}
    if found.verdict == "tight":
        yield "plan/script-tight", {"used": size(found.used_bytes), "have": size(found.device_bytes)}


def _refuse(found: ScriptForecast) -> PlanError:
    """Return the refusal, with a batch that would fit."""
    used, have = size(found.used_bytes), size(found.device_bytes)
    if found.device is None:
        return PlanError("plan/script-over-host", used=used, have=have)
    parts = sorted(found.memory.parts.items(), key=lambda part: -part[1])
    return PlanError(
        "plan/script-does-not-fit",
        micro=found.trace.micro_batch or "?",
        used=used,
        have=have,
        most=", ".join(f"{say(f'plan/holder-{name}')} {size(held)}" for name, held in parts[:3]),
        fits=found.largest_micro_batch or 0,
    )
