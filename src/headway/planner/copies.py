"""What it costs to keep the last step in memory, and so how often it is kept (`save.in_memory`)."""

from __future__ import annotations

import math
from typing import Final

from headway.config import RunConfig
from headway.machine import MachineReport
from headway.planner.forecast import Forecast
from headway.planner.record import Plan, PlanRow
from headway.planner.rows import make_row
from headway.units import duration, size

SHARE: Final = 0.05
"""Of the training time: what copies may cost where the user has not said how often he wants them."""
ROOM: Final = 0.5
"""Of the free memory: what the two copies of all ranks may take together."""
_BYTES_S: Final = 3e9
"""One rank copies and hashes as much; measured on one busy core 0.7e9, on an idle one 3e9."""
_FIXED_S: Final = 0.4e-3
"""What a copy of a tiny model takes: generators, the small state and its seal."""


def price_copies(
    plan: Plan, config: RunConfig, machine: MachineReport, *, forecast: Forecast | None, step_s: float | None
) -> PlanRow:
    """Return how often the state is copied, by its foreseen price; the ranks go by the price that they measure."""
    wish = config.save.in_memory
    origin = "save.in_memory"
    if wish == 0:
        return make_row("in-memory", "", origin, value_code="plan/value-no-copies")
    if forecast is None:
        code = "plan/value-copies-auto" if wish == "auto" else "plan/value-steps"
        return make_row("in-memory", "", origin, value_code=code, steps=wish)
    need = 2 * forecast.checkpoint_bytes
    if need > ROOM * machine.planned_memory_bytes:
        facts = {"need": size(need), "free": size(machine.planned_memory_bytes)}
        return make_row(
            "in-memory", "", value_code="plan/value-no-copies", origin_code="plan/from-copies-room", **facts
        )
    copy_s = forecast.checkpoint_bytes / plan.world_size / _BYTES_S + _FIXED_S
    facts = {"need": size(need), "copy": duration(copy_s), "step": duration(step_s)}
    if wish != "auto" or step_s is None:
        code = "plan/value-copies-auto" if wish == "auto" else "plan/value-steps"
        return make_row("in-memory", "", value_code=code, origin_code="plan/from-copies-size", steps=wish, **facts)
    every = max(1, math.ceil(copy_s / (SHARE * step_s)))
    code = "plan/value-copies-auto" if every == 1 else "plan/value-steps"
    return make_row("in-memory", "", value_code=code, origin_code="plan/from-copies-price", steps=every, **facts)
