"""What a public model or a script of the user's own would hold, and how fast it would be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from headway.errors import PlanError
from headway.machine import MachineReport
from headway.messages import say
from headway.planner import (
    ScriptForecast,
    SpeedForecast,
    compared_cards,
    label_text,
    network_rows,
    origin_text,
    value_text,
)
from headway.planner.models.public import NamedForecast, largest_batch, list_words, other_ways
from headway.ui.terminal.machine import show_notes
from headway.ui.terminal.plan import show_figures, show_holders
from headway.units import count, duration, short, size


def show_model(found: NamedForecast, machine: MachineReport, console: Console) -> None:
    """Print the forecast, its memory breakdown, and what else could be done."""
    show_figures(found.model.name, _model_rows(found, machine), console)
    show_holders(found.to_json(), console)
    table = Table(title=say("plan/whatif-title"), title_justify="left", title_style="bold", box=None)
    table.add_column(say("plan/column-change"), style="cyan")
    table.add_column(say("plan/column-gpu-memory"))
    table.add_column(say("plan/column-largest"), justify="right")
    table.add_column(say("plan/column-rate"), justify="right")
    for change, other in other_ways(found, machine):
        is_told = other.speed is not None and other.verdict != "will-not-fit"
        rate = short(other.speed.samples_s) if is_told and other.speed else say("plan/value-none")
        table.add_row(change, _memory(other), _largest(other, machine), rate)
    if table.row_count:
        console.print(table)
        console.print()


def show_names(families: Mapping[str, Sequence[str]], console: Console) -> None:
    """Print every model's name that is understood, a family per line."""
    table = Table(box=None, show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for family, names in families.items():
        table.add_row(family, " ".join(names))
    console.print(table)


def _largest(found: NamedForecast, machine: MachineReport) -> str:
    """Return the largest batch that fits, or the one that might just do so, marked as such."""
    if most := largest_batch(found, machine):
        return count(most)
    most = largest_batch(found, machine, tight=True)
    return say("plan/value-batch-tight", num=count(most)) if most else "0"


def show_script(found: ScriptForecast, console: Console) -> None:
    """Print the forecast and where each figure comes from."""
    show_figures(found.line.entry, _script_rows(found), console)
    show_holders(found.to_json(), console, on_gpu=found.device is not None)
    show_notes((("warn", code, facts) for code, facts in _notes(found)), console)


def show_script_variants(found: ScriptForecast, console: Console) -> None:
    """Print what other batches, up to the largest that fits, and other GPUs would give."""
    now, most = found.trace.micro_batch, found.largest_micro_batch
    memory = say("plan/column-memory" if found.device is None else "plan/column-gpu-memory")
    if now is not None:
        others = {samples for samples in (now // 4, now // 2, now * 2, now * 4) if 0 < samples <= (most or now)}
        rows = [(samples, found.with_batch(samples)) for samples in sorted({*others, *([most] if most else [])})]
        table = _variants(say("plan/whatif-title"), say("plan/column-script-batch"), memory)
        for samples, other in rows:
            is_most = samples == most
            name = say("plan/value-largest", num=count(samples)) if is_most else count(samples)
            table.add_row(name, *_told(other))
        console.print(table)
        console.print()
    if found.card is None:
        return
    table = _variants(say("plan/cards-title", num=found.line.ranks), say("plan/column-card"), memory)
    for card in compared_cards():
        table.add_row(card.name, *_told(found.with_card(card)))
    console.print(table)
    console.print()


def _variants(title: str, first: str, memory: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    table.add_column(first, style="cyan")
    table.add_column(memory)
    table.add_column(say("plan/column-rate"), justify="right")
    return table


def _told(found: ScriptForecast) -> tuple[str, str]:
    """Return memory with its verdict, and speed where it would run and a batch was seen."""
    used, have = size(found.used_bytes), size(found.device_bytes)
    is_told = found.speed is not None and found.verdict != "will-not-fit" and found.trace.micro_batch is not None
    rate = short(found.speed.samples_s) if is_told and found.speed else say("plan/value-none")
    return say(f"plan/value-memory-{found.verdict}", used=used, have=have), rate


def _memory(found: NamedForecast) -> str:
    used, have = size(found.used_bytes), size(found.device_bytes)
    return say(f"plan/value-memory-{found.verdict}", used=used, have=have)


def _model_rows(found: NamedForecast, machine: MachineReport) -> Iterator[tuple[str, str, str]]:
    chosen, ranks = found.settings, found.ranks
    trained = say("plan/script-trained", num=short(found.trained), optimizers=chosen.optimizer)
    yield say("plan/row-script-params"), short(found.params), trained
    yield say("plan/row-script-ranks"), str(ranks), found.device
    step = " ".join(list_words(found))
    yield say("plan/row-model-step"), step, ""
    replicas = max(1, ranks // chosen.tensor)
    samples = chosen.batch * chosen.accumulation * replicas
    yield say("plan/row-script-batch"), count(samples), f"{chosen.batch} × {chosen.accumulation} × {replicas}"
    origin = say("plan/from-formula", moment=found.memory.moment)
    yield say("plan/row-gpu-memory"), _memory(found), origin
    yield say("plan/row-model-largest"), _largest(found, machine), origin
    if found.speed is not None and found.verdict != "will-not-fit":
        origin = _time_origin(found.speed)
        yield say("plan/row-step-time"), duration(found.speed.step_s), origin
        rate = short(found.speed.samples_s)
        if found.model.is_vision:
            yield say("plan/row-rate"), say("plan/value-rate", rate=rate), origin
        else:
            tokens = short(found.speed.samples_s * chosen.seq)
            yield say("plan/row-rate"), say("plan/value-rate-tokens", rate=rate, tokens=tokens), origin
        yield from _network(found.speed)
        if found.run_s is not None:
            steps = math.ceil(chosen.samples * chosen.epochs / samples)
            yield say("plan/row-eta"), duration(found.run_s), f"{count(steps)} × {duration(found.speed.step_s)}"


def _time_origin(speed: SpeedForecast) -> str:
    """Return where a time comes from: the card's rates, or, of a small model, the least a host needs."""
    return say(speed.origin, mfu=f"{speed.mfu:.0%}", other=speed.derived_from or "")


def _script_rows(found: ScriptForecast) -> Iterator[tuple[str, str, str]]:
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
    yield (
        say("plan/row-gpu-memory" if found.device else "plan/row-memory"),
        value,
        say("plan/script-how", origin=origin, what=say("plan/script-whole")),
    )
    if (most := found.largest_micro_batch) is not None:
        yield say("plan/row-script-largest"), count(most), say("plan/from-even-growth")
    if found.speed is not None:
        origin = _time_origin(found.speed)
        yield say("plan/row-step-time"), duration(found.speed.step_s), origin
        if trace.micro_batch is not None:
            yield say("plan/row-rate"), say("plan/value-rate", rate=short(found.speed.samples_s)), origin
        yield from _network(found.speed)


def _network(speed: SpeedForecast) -> Iterator[tuple[str, str, str]]:
    for row in network_rows(speed):
        yield label_text(row), value_text(row), origin_text(row)


def _notes(found: ScriptForecast) -> Iterator[tuple[str, dict[str, str]]]:
    if not found.trace.on_device and found.line.has_gpus:
        yield "plan/script-on-host", {}
    if "compile" in found.trace.left_out:
        yield "plan/script-compiled", {}
    if found.verdict == "tight":
        yield "plan/script-tight", {"used": size(found.used_bytes), "have": size(found.device_bytes)}


def refuse_model(found: NamedForecast, machine: MachineReport) -> PlanError:
    """Return the refusal, with changes that would fit."""
    parts = sorted(found.memory.parts.items(), key=lambda part: -part[1])
    choices = [change for change, other in other_ways(found, machine) if other.verdict == "fits"]
    largest = largest_batch(found, machine)
    if largest:
        choices.insert(0, f"batch={largest}")
    return PlanError(
        "plan/model-does-not-fit",
        name=found.model.name,
        micro=found.settings.batch,
        used=size(found.used_bytes),
        have=size(found.device_bytes),
        most=", ".join(f"{say(f'plan/holder-{name}')} {size(held)}" for name, held in parts[:3]),
        choices="\n".join(f"  {change}" for change in choices) or say("plan/value-none"),
    )


def refuse_script(found: ScriptForecast) -> PlanError:
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
