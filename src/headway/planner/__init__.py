"""How it will fit: a config, a `MachineReport` and a recipe come in, a `Plan` goes out. Arithmetic, no framework."""

from headway.planner.batch import Batch, BatchWish, keep_total, resolve_batch, suggest_batches, write_batch
from headway.planner.calibrate import Seen, Sighting, expect, fingerprint, recall, remember
from headway.planner.forecast import (
    SHARES,
    Forecast,
    Model,
    Variant,
    as_card,
    compared_cards,
    fill_memory,
    find_card,
    foresee,
    imagine,
    imagine_cards,
    know_model,
    speed_up,
)
from headway.planner.grace import grace_s
from headway.planner.length import Standing, continue_plan
from headway.planner.make import make_plan
from headway.planner.memory import MemoryForecast
from headway.planner.outlook import has_trace, list_holders, look_ahead, needs_trace, network_rows, study_model
from headway.planner.record import Plan, PlanRow, PlanWarning
from headway.planner.roofline import SpeedForecast
from headway.planner.row_text import label_text, origin_text, value_text
from headway.planner.schedule import LrSchedule, draw_curve, lr_at, lr_factor, make_schedule
from headway.planner.script_forecast import ScriptForecast, foresee_script
from headway.planner.script_trace import ScriptLine, ScriptTrace, ask_script, trace_script
from headway.planner.sized_preset import fit_preset

__all__ = [
    "SHARES",
    "Batch",
    "BatchWish",
    "Forecast",
    "LrSchedule",
    "MemoryForecast",
    "Model",
    "Plan",
    "PlanRow",
    "PlanWarning",
    "ScriptForecast",
    "ScriptLine",
    "ScriptTrace",
    "Seen",
    "Sighting",
    "SpeedForecast",
    "Standing",
    "Variant",
    "as_card",
    "ask_script",
    "compared_cards",
    "continue_plan",
    "draw_curve",
    "expect",
    "fill_memory",
    "find_card",
    "fingerprint",
    "fit_preset",
    "foresee",
    "foresee_script",
    "grace_s",
    "has_trace",
    "imagine",
    "imagine_cards",
    "keep_total",
    "know_model",
    "label_text",
    "list_holders",
    "look_ahead",
    "lr_at",
    "lr_factor",
    "make_plan",
    "make_schedule",
    "needs_trace",
    "network_rows",
    "origin_text",
    "recall",
    "remember",
    "resolve_batch",
    "speed_up",
    "study_model",
    "suggest_batches",
    "trace_script",
    "value_text",
    "write_batch",
]
