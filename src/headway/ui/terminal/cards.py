"""The cards that can be named, and what their forecasts are based on (`headway plan --on list`)."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from headway.machine import GpuModel, gpu_models
from headway.messages import say
from headway.planner import as_card
from headway.units import size


def list_cards() -> list[dict[str, Any]]:
    """Return every card with its data sheet, its measured rate and where that comes from, or what is assumed.

    Any: numbers and texts of one JSON object.
    """
    return [_facts(model) for model in gpu_models() if model.tflops_half is not None]


def show_cards(console: Console) -> None:
    """Print that list."""
    title = say("plan/cards-list-title")
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    table.add_column(say("plan/column-card"), style="cyan")
    table.add_column(say("plan/column-name"), no_wrap=True)
    for code in ("plan/column-room", "plan/column-sheet", "plan/column-measured"):
        table.add_column(say(code), justify="right")
    table.add_column(say("plan/column-source"), style="dim", overflow="fold")
    for facts in list_cards():
        measured = f"{facts['gemm_half']:.0f}" if facts["gemm_half"] else say("plan/value-none")
        room = size(facts["memory_gib"] * 2**30)
        table.add_row(facts["name"], facts["write"], room, f"{facts['tflops_half']:.0f}", measured, _source(facts))
    console.print(table)


def _facts(model: GpuModel) -> dict[str, Any]:
    """Return what the list says of a card."""
    card = as_card(model)
    return {
        "name": model.name,
        "write": model.aliases[0] if model.aliases else model.name,
        "memory_gib": model.memory_gib,
        "tflops_half": model.tflops_half,
        "gemm_half": model.gemm_half,
        "assumed_half": round(card.gemm_half, 1) if card and card.derived_from else None,
        "derived_from": card.derived_from if card else None,
        "source": model.gemm_source,
        "measured_on": model.gemm_of,
    }


def _source(facts: dict[str, Any]) -> str:
    if facts["assumed_half"] is not None:
        return say("plan/value-assumed", rate=f"{facts['assumed_half']:.0f}", other=facts["derived_from"])
    if facts["measured_on"]:
        return say("plan/value-same-chip", source=facts["source"], other=facts["measured_on"])
    return facts["source"] or say("plan/value-none")
