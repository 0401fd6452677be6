"""The words of a plan row in either language; the record keeps codes and facts, so a stored plan reads in both."""

from __future__ import annotations

from headway.messages import Language, say
from headway.plan.record import PlanRow

_LAYERS = ("default", "recipe", "preset", "file", "environment", "command line")
FILE_LAYER = _LAYERS.index("file")
"""From here up, somebody wrote the value for this run."""
COMMAND_LAYER = _LAYERS.index("command line")
"""Somebody has just typed it."""


def layer_of(origin: str) -> int:
    """Return the rank of the layer an origin speaks of; what names a place is a file."""
    for layer in ("default", "recipe", "preset", "environment", "command line"):
        if origin == layer or origin.startswith(f"{layer} "):
            return _LAYERS.index(layer)
    return FILE_LAYER


def label_text(row: PlanRow, lang: Language | None = None) -> str:
    """Return what the row is about."""
    return say(f"plan/row-{row.key}", lang)


def value_text(row: PlanRow, lang: Language | None = None) -> str:
    """Return the value as people read it."""
    return say(row.value_code, lang, **row.facts) if row.value_code else row.value


def origin_text(row: PlanRow, lang: Language | None = None) -> str:
    """Return where the value came from."""
    if row.origin_code:
        return say(row.origin_code, lang, **row.facts)
    layer, _, rest = row.origin.partition(" ")
    if row.origin.startswith("command line"):
        layer, rest = "command-line", row.origin.removeprefix("command line").strip()
    if layer not in ("default", "recipe", "preset", "environment", "command-line"):
        return row.origin
    return say(f"plan/from-{layer}", lang, rest=rest).strip()
