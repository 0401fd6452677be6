"""The words of a plan row in either language; the record keeps codes and facts, so a stored plan reads in both."""

from __future__ import annotations

import re

from headway.config import LAYERS, layer_of
from headway.messages import Language, say
from headway.planner.record import PlanRow

FILE_LAYER = LAYERS.index("file")
"""From here up, somebody wrote the value for this run."""
COMMAND_LAYER = 1 << 30
"""Somebody has just typed it; what was typed at earlier starts of the run, `command line 2`, lies below, in order."""
_IN_FILE = re.compile(r":\d+:\d+$")


def rank_of(origin: str) -> int:
    """Return the rank of the layer an origin belongs to."""
    layer = layer_of(origin)
    if layer != "command line":
        return LAYERS.index(layer)
    turn = origin.removeprefix(layer).strip()
    if not turn:
        return COMMAND_LAYER
    return len(LAYERS) + (int(turn) if turn.isascii() and turn.isdigit() and len(turn) < 9 else 0)


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
    if _IN_FILE.search(row.origin):  # a file may be called `preset a.yaml`
        return row.origin
    layer, _, rest = row.origin.partition(" ")
    if row.origin.startswith("command line"):
        rest = row.origin.removeprefix("command line").strip()
        layer = "command-line-before" if rest else "command-line"
    if layer not in ("default", "recipe", "preset", "environment", "command-line", "command-line-before"):
        return row.origin
    return say(f"plan/from-{layer}", lang, rest=rest).strip()
