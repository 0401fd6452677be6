"""Everything the report tells, read from the run directory once."""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.config import flatten
from headway.redact import redact_lines
from headway.telemetry import (
    PARTS,
    STARTS,
    Columns,
    DeviceHistory,
    Event,
    Measure,
    RunDir,
    RunState,
    count_steps,
    held_validations,
    number,
    read_devices,
    read_events,
    read_log_tail,
    read_metrics,
    read_part,
    read_record,
    read_scalars,
    run_state,
    section,
    whole,
)
from headway.ui.compare import Beside, compare_runs, find_siblings
from headway.ui.report.thin import Floats
from headway.ui.rows import glance_rows, is_long, sample_rows
from headway.ui.text import clean_text

_COUNTS = ("total_steps", "total_samples", "tokens_per_sample", "world_size", "batch_samples")
"""Numbers of a plan that the report computes with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The steps all ranks have finished, one row per rank where ranks differ."""

    step: Floats
    t: Floats
    """When each step ended, unix seconds."""
    samples: Floats
    loss: Floats
    lr: Floats
    grad_norm: Floats
    own_s: Floats
    """Time of the slowest rank, validation and saving left out: the others wait for it."""
    parts: dict[str, Floats]
    """Seconds of each part, the median over the ranks."""
    is_told: NDArray[np.bool_]
    """Steps whose split is known: on a GPU only some steps wait at each part to tell it."""
    total_s: Floats
    """Whole step, the median over the ranks."""
    weight: Floats
    """How many steps each one stands for: 1, but of a long run only some are read; 0: it is there to be drawn."""
    memory: dict[int, Floats]
    """Bytes by rank; ranks that never reported any are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the page is made from."""

    state: RunState
    events: list[Event]
    steps: Steps | None
    validations: list[Event]
    """The last one of every step, in order of steps."""
    baselines: list[tuple[str, Measure]]
    """Names of baselines and their value as the deciding measure."""
    redone_steps: int
    wall_s: float
    """Time under a supervisor, all sessions together."""
    plan: dict[str, Any]
    config: dict[str, Any]
    origins: dict[str, Any]
    machine: dict[str, Any]
    command: dict[str, Any]
    log_tail: list[str]
    devices: DeviceHistory
    is_glance: bool
    """Of a run too long to be read at once only some places were looked at."""
    scalars: dict[str, list[tuple[int, float]]]
    """What a script has written into TensorBoard's event files: steps and values by name."""
    beside: list[Beside]
    """This run, then those of its folder and recipe that differ in a few settings; empty: there are none."""

    @property
    def memory(self) -> str:
        """Whose memory the run was measured by."""
        return "gpu-memory" if self.plan.get("device") == "cuda" else "host-memory"


def gather(run: RunDir, *, with_siblings: bool = True, at_once: bool = False) -> Facts:
    """Read a run directory, and for `beside` those next to it.

    Args:
        at_once: look at some places of a long run instead of reading it.
    """
    events = [_typed_event(event) for event in read_events(run.events)]
    job = read_record(run.job)
    launch = section(job.get("launch"))
    state = run_state(run, events)
    is_glance = at_once and is_long_run(run)
    by_rank, weight, redone = _glance(run) if is_glance else _read_ranks(run)
    validations = _last_of_steps(held_validations(events))
    origins = read_record(run.origins)
    siblings = find_siblings(run) if with_siblings else []
    return Facts(
        state=state,
        events=events,
        steps=_join_ranks({rank: found for rank, found in by_rank.items() if len(found["step"])}, weight),
        validations=validations,
        baselines=_baselines(events, state.best or state.validation),
        redone_steps=redone,
        wall_s=_wall_s(events, by_rank[0]["t"] if 0 in by_rank else ()),
        plan=_typed_plan({**launch, **(read_record(run.plan) or section(job.get("plan")))}),
        config=flatten(section(job.get("config")) or {"launch": launch}),
        origins=flatten(section(origins.get("origins", origins))),
        machine=_typed_machine(read_record(run.machine)),
        command=read_record(run.command),
        log_tail=_log_tail(run),
        devices=read_devices(run.devices),
        scalars=read_scalars(run),
        is_glance=is_glance,
        beside=compare_runs([run, *siblings]) if siblings else [],
    )


def _typed_plan(plan: dict[str, Any]) -> dict[str, Any]:
    """Return a plan whose numbers are numbers: the file may be damaged, or of another version."""
    forecast = {name: _number_or_text(value) for name, value in section(plan.get("forecast")).items()}
    rows = plan.get("rows")
    return {
        **plan,
        **{name: whole(plan.get(name)) for name in _COUNTS},
        "forecast": forecast,
        "rows": rows if isinstance(rows, list) else [],
    }


def _number_or_text(value: Any) -> Any:
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else None


def _typed_machine(machine: dict[str, Any]) -> dict[str, Any]:
    gpus = machine.get("gpus")
    return {**machine, "gpus": gpus if isinstance(gpus, list) else []}


def _typed_event(event: Event) -> Event:
    """Return an event whose measures, where it has any, are numbers by name."""
    return {**event, "measures": section(event["measures"])} if "measures" in event else event


def _log_tail(run: RunDir) -> list[str]:
    lines = read_log_tail(run.log, 8192).decode("utf-8", "replace").splitlines()
    return redact_lines([clean_text(line) for line in lines[-40:]])


def _last_of_steps(validations: list[Event]) -> list[Event]:
    by_step = {event["step"]: event for event in validations}
    return [by_step[step] for step in sorted(by_step)]


def _baselines(events: list[Event], measure: Measure | None) -> list[tuple[str, Measure]]:
    """Return `unigram` for `unigram_bpb` when the run is judged by `bpb`."""
    if measure is None:
        return []
    found: dict[str, Measure] = {}
    for event in events:
        for key, value in (event.get("measures") or {}).items() if event.get("kind") == "baseline" else ():
            name = key.removesuffix(f"_{measure.name}")
            if name != key and math.isfinite(number(value)):
                found[name] = Measure(name=measure.name, value=number(value), step=0, sense=measure.sense)
    return list(found.items())


def is_long_run(run: RunDir) -> bool:
    """Say whether a run has more steps than are read one by one."""
    return any(is_long(run.metrics(rank)) for rank in run.ranks())


def _glance(run: RunDir) -> tuple[dict[int, Columns], Floats | None, int]:
    """Return some steps of the first rank; the others are in the same place within a step or two."""
    first = min(run.ranks())
    found = glance_rows(run.metrics(first))
    return {first: found.columns}, found.weight, 0


def _read_ranks(run: RunDir) -> tuple[dict[int, Columns], Floats | None, int]:
    """Return every rank's steps, the weights of the first one's, and how many were trained and lost again.

    A run of a million steps is read as a stream, and only some thousand of its steps are kept.
    """
    ranks = run.ranks()
    if not ranks or not any(is_long(run.metrics(rank)) for rank in ranks):
        found = {rank: read_metrics(run.metrics(rank)) for rank in ranks}
        lines = count_steps(read_part(run.metrics(0))) if 0 in found else 0
        return found, None, max(0, lines - len(found[0]["step"])) if 0 in found else 0
    first = sample_rows(run.metrics(ranks[0]))
    chosen = np.frombuffer(first.columns["step"]) if len(first.columns["step"]) else np.zeros(0)
    others = {rank: sample_rows(run.metrics(rank), chosen).columns for rank in ranks[1:]}
    return {ranks[0]: first.columns, **others}, first.weight, first.num_lines - first.num_kept


def _wall_s(events: list[Event], step_times: Sequence[float]) -> float:
    """Return the time of all sessions: each from its start to its end, or to the last sign it left when killed."""
    steps = sorted(t for t in step_times if math.isfinite(t))
    total, began, last = 0.0, None, 0.0
    for event in events:
        t, kind = number(event.get("t")), event.get("kind")
        if not math.isfinite(t):
            continue
        if began is not None and kind in ("run_started", "run_resumed"):
            total, began = total + max(0.0, _last_before(steps, t, last) - began), t
        elif began is None and kind in STARTS:
            began = t
        last = t
        if kind == "run_ended" and began is not None:
            total, began = total + max(0.0, t - began), None
    return total + (max(0.0, _last_before(steps, math.inf, last) - began) if began is not None else 0.0)


def _last_before(steps: list[float], until: float, last: float) -> float:
    """Return the last sign of a session: an event, or a step after it."""
    found = bisect_left(steps, until)
    return max(last, steps[found - 1]) if found else last


def _join_ranks(ranks: dict[int, Columns], weight: Floats | None = None) -> Steps | None:
    if not ranks:
        return None
    arrays = {rank: {key: np.frombuffer(col) for key, col in cols.items()} for rank, cols in ranks.items()}
    common = functools.reduce(np.intersect1d, [columns["step"] for columns in arrays.values()])
    if not len(common):
        return None
    rows = {rank: np.searchsorted(columns["step"], common) for rank, columns in arrays.items()}

    def pick(key: str) -> Floats:
        return np.stack([columns[key][rows[rank]] for rank, columns in arrays.items()])

    first = min(arrays)
    one = {key: arrays[first][key][rows[first]] for key in ("t", "samples", "loss", "lr", "grad_norm")}
    spent = np.nan_to_num(pick("save")) + np.nan_to_num(pick("eval"))
    inside = np.nan_to_num(sum(pick(key) for key in ("data", "forward", "backward", "optimizer")))
    parts = {key: np.nan_to_num(np.median(pick(key), axis=0)) for key in PARTS}
    memory = {rank: columns["mem"][rows[rank]] for rank, columns in arrays.items()}
    return Steps(
        step=common,
        weight=np.ones(len(common)) if weight is None else weight[rows[first]],
        own_s=np.maximum(pick("dt") - spent, inside).max(axis=0),
        parts=parts,
        is_told=np.asarray(sum(parts[key] for key in ("data", "forward", "backward", "optimizer"))) > 0,
        total_s=np.median(pick("dt"), axis=0),
        memory={rank: values for rank, values in memory.items() if np.isfinite(values).any()},
        **one,
    )
