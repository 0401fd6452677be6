"""The words of a plan row in either language; the record keeps codes and facts, so a stored plan reads in both."""

from __future__ import annotations

from headway.messages import Language, say
from headway.plan.record import PlanRow

_LAYERS = ("default", "recipe", "preset", "file", "environment")
FILE_LAYER = _LAYERS.index("file")
"""From here up, somebody wrote the value for this run."""
COMMAND_LAYER = 1 << 30
"""Somebody has just typed it; what was typed at earlier starts of the run, `command line 2`, lies below, in order."""


def layer_of(origin: str) -> int:
    """Return the rank of the layer an origin speaks of; what names a place is a file."""
    if origin == "command line":
        return COMMAND_LAYER
    if origin.startswith("command line "):
        turn = origin.removeprefix("command line ")
        return len(_LAYERS) + (int(turn) if turn.isascii() and turn.isdigit() and len(turn) < 9 else 0)
    for layer in ("default", "recipe", "preset", "environment"):
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
        rest = row.origin.removeprefix("command line").strip()
        layer = "command-line-before" if rest else "command-line"
    if layer not in ("default", "recipe", "preset", "environment", "command-line", "command-line-before"):
        return row.origin
    return say(f"plan/from-{layer}", lang, rest=rest).strip()
