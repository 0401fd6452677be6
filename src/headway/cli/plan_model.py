"""`headway plan --model`: what a public model would hold on a card, and how fast it would be."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from headway.cli.bilingual import echo_json
from headway.cli.check import show_notes
from headway.errors import PlanError
from headway.machine import MachineReport, find_machine, has_bf16, wished_devices
from headway.messages import say
from headway.planner import list_holders
from headway.planner.models.public import (
    NamedForecast,
    find_named,
    foresee_named,
    largest_batch,
    list_words,
    other_ways,
    read_settings,
)
from headway.ui.console_safe import make_console
from headway.units import count, duration, short, size


def plan_model(name: str, words: Sequence[str], *, record: Path | None, wanted: str | None, as_json: bool) -> None:
    """Print what the model's step takes and gives, and what a single change would; refuse what does not fit."""
    model = find_named(name)
    settings = read_settings(words, model)
    machine = find_machine(Path(), record=record, wanted=wanted)
    if wanted is not None:
        machine = replace(machine, gpus=wished_devices(wanted))
    old = next((gpu for gpu in machine.gpus if has_bf16(gpu) is False), None)
    if old is not None and not any(word.removeprefix("--").startswith("precision=") for word in words):
        settings = replace(settings, precision="fp16")
    found = foresee_named(model, settings, machine)
    if old is not None and settings.precision.startswith("bf16"):
        facts = {"gpu": old.name or "GPU", "command": _with_fp16(name, words, record, wanted)}
        show_notes([("warn", "plan/model-bf16-emulated", facts)], Console(stderr=True, highlight=False))
    if as_json:
        out = {**found.to_json(), "largest_batch": largest_batch(found, machine)}
        echo_json(out, indent=2)
    else:
        show_model(found, machine, make_console())
    if found.verdict == "will-not-fit":
        raise _refuse(found, machine)


def _with_fp16(name: str, words: Sequence[str], record: Path | None, wanted: str | None) -> str:
    """Return the same command in fp16."""
    place = ["--on", wanted] if wanted is not None else ["--machine", str(record)] if record is not None else []
    kept = ["precision=fp16" if word.removeprefix("--").startswith("precision=") else word for word in words]
    return shlex.join(["headway", "plan", "--model", name, *place, *kept])


def show_model(found: NamedForecast, machine: MachineReport, console: Console) -> None:
    """Print the forecast, who holds it, and what else could be done."""
    table = Table(title=say("plan/title", recipe=found.model.name), title_justify="left", title_style="bold", box=None)
    table.add_column(say("plan/column-what"), style="cyan", no_wrap=True)
    table.add_column(say("plan/column-value"), overflow="fold")
    table.add_column(say("plan/column-origin"), style="dim", overflow="fold")
    for row in _rows(found, machine):
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
    table = Table(title=say("plan/whatif-title"), title_justify="left", title_style="bold", box=None)
    table.add_column(say("plan/column-change"), style="cyan")
    table.add_column(say("plan/column-memory"))
    table.add_column(say("plan/column-largest"), justify="right")
    table.add_column(say("plan/column-rate"), justify="right")
    for change, other in other_ways(found, machine):
        rate = short(other.speed.samples_s) if other.speed else say("plan/value-none")
        table.add_row(change, _memory(other), str(largest_batch(other, machine)), rate)
    if table.row_count:
        console.print(table)
        console.print()


def _memory(found: NamedForecast) -> str:
    used, have = size(found.memory.used_bytes), size(found.device_bytes)
    return say(f"plan/value-memory-{found.verdict}", used=used, have=have)


def _rows(found: NamedForecast, machine: MachineReport) -> Iterator[tuple[str, str, str]]:
    chosen, ranks = found.settings, found.ranks
    trained = say("plan/script-trained", num=short(found.trained), optimizers=chosen.optimizer)
    yield say("plan/row-script-params"), short(found.params), trained
    yield say("plan/row-script-ranks"), str(ranks), found.device
    step = " ".join(list_words(found))
    yield say("plan/row-model-step"), step, ""
    samples = chosen.batch * chosen.accumulation * ranks
    yield say("plan/row-script-batch"), count(samples), f"{chosen.batch} × {chosen.accumulation} × {ranks}"
    origin = say("plan/from-formula", moment=found.memory.moment)
    yield say("plan/row-memory"), _memory(found), origin
    yield say("plan/row-model-largest"), count(largest_batch(found, machine)), origin
    if found.speed is not None:
        origin = say("plan/from-roofline", mfu=f"{found.speed.mfu:.0%}")
        yield say("plan/row-step-time"), duration(found.speed.step_s), origin
        rate = short(found.speed.samples_s)
        if found.model.is_vision:
            yield say("plan/row-rate"), say("plan/value-rate", rate=rate), origin
        else:
            tokens = short(found.speed.samples_s * chosen.seq)
            yield say("plan/row-rate"), say("plan/value-rate-tokens", rate=rate, tokens=tokens), origin


def _refuse(found: NamedForecast, machine: MachineReport) -> PlanError:
    """Return the refusal, with changes that would fit."""
    parts = sorted(found.memory.parts.items(), key=lambda part: -part[1])
    choices = [change for change, other in other_ways(found, machine) if other.verdict != "will-not-fit"]
    largest = largest_batch(found, machine)
    if largest:
        choices.insert(0, f"batch={largest}")
    return PlanError(
        "plan/model-does-not-fit",
        name=found.model.name,
        micro=found.settings.batch,
        used=size(found.memory.used_bytes),
        have=size(found.device_bytes),
        most=", ".join(f"{say(f'plan/holder-{name}')} {size(held)}" for name, held in parts[:3]),
        choices="; ".join(choices) or say("plan/value-none"),
    )
