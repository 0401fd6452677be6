"""Classifiers as questions: timm's rows by the names of their models."""

from __future__ import annotations

import re

from headway.planner.models.convnet import Tape
from headway.planner.models.vision import walk_classifier
from plan_rows import InexpressibleError, Row

SAME = 0.04
"""How far counted weights may be from the stated ones: a variant of the same name is another network."""


def walk_timm(row: Row, tape: Tape) -> bool:
    """Walk the row's network and its linear layer; return whether its speed can be asked too."""
    name = row["model"].lower()
    sides = [int(side) for side in re.findall(r"\d+", str(row.get("image_size", "")))]
    if not sides:
        raise InexpressibleError("image size not stated")
    timed = walk_classifier(name, tape, sides[0], sides[-1])
    if timed is None:
        raise InexpressibleError(f"no formula for {name}")
    if row.get("params") and abs(tape.params / row["params"] - 1) > SAME:
        raise InexpressibleError(f"{name} is not the network its name says here")
    return timed
