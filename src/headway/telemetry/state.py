"""What a run is doing, rebuilt from its directory alone: on another machine, after a kill of everything."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from headway.process import boot_id, is_same_kernel, look_up
from headway.telemetry.event_files import last_loss
from headway.telemetry.events import Event, read_events
from headway.telemetry.heartbeat import Beat, read_beat
from headway.telemetry.lease import is_locked
from headway.telemetry.lines import number
from headway.telemetry.metrics import Columns, own_step_s, tail_metrics
from headway.telemetry.reading import read_record, section, whole, words
from headway.telemetry.rundir import RunDir

State = Literal["running", "done", "stopped", "failed", "interrupted", "lost"]
ENDED: Final[tuple[State, ...]] = ("done", "stopped", "failed", "interrupted")
STARTS: Final = ("run_started", "run_resumed", "attempt_started")
"""Events after which an earlier end no longer counts."""

_RECENT_STEPS: Final = 20
_FRESH_S: Final = 120.0
"""A run supervised on another host counts as running while its files (the lease among them) moved this lately."""
_STARTS_S: Final = 20.0
"""A run in the background has written its first event by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A validation result."""

    name: str
    value: float
    step: int
    sense: Literal["min", "max"] = "min"
    """Which way is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A committed checkpoint."""

    step: int
    path: str
    num_bytes: int
    t: float
    stall_s: float
    write_s: float
    is_there: bool
    """Still in the folder: neither pruned nor removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankState:
    """Where one rank is."""

    rank: int
    attempt: int
    phase: str
    step: int
    age_s: float | None
    """Since its last sign of life; none when its clock cannot be compared with ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a run has failed: a message by its code, so that every reader says it in its own language."""

    code: str
    facts: dict[str, str]
    rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """What a run is doing."""

    name: str
    path: str
    recipe: str | None
    state: State
    exit_code: int | None
    why: str | None
    cause: Cause | None
    """Of a run that has failed: its last incident."""
    started: float | None
    """Unix seconds of the first start."""
    ended: float | None
    """Unix seconds of the last sign of life of a run that is over."""
    step: int
    total_steps: int | None
    samples: int | None
    tokens_per_sample: int | None
    world_size: int | None
    loss: float | None
    validation: Measure | None
    """The last one."""
    best: Measure | None
    best_checkpoint: str | None
    rate_samples_s: float | None
    """Over the last steps, validation and saving left out."""
    rate_steps_s: float | None
    eta_s: float | None
    """None when the run is over or its rate is unknown."""
    attempts: int
    from_memory: int
    """Attempts that continued from the last step kept in memory, not from a checkpoint."""
    redone_steps: int
    """Steps that attempts had to take again."""
    incidents: int
    checkpoints: tuple[Saved, ...]
    ranks: tuple[RankState, ...]
    findings: int = 0
    """What was found while it trained, over or not."""


def run_state(run: RunDir, events: list[Event] | None = None) -> RunState:
    """Read the directory and say what the run is doing."""
    events = read_events(run.events) if events is None else events
    job = read_record(run.job)
    plan = section(job.get("plan")) or read_record(run.plan)
    steps = tail_metrics(run.metrics(0))
    end = last_end(events)
    state = _state(run, end, events)
    beats = {rank: beat for rank in run.ranks() if (beat := read_beat(run.heartbeat(rank)))}
    step, samples, loss = _position(steps, beats.get(0), end)
    if not plan and (loss is None or math.isnan(loss)):
        printed = _last_printed(steps)
        loss = printed if printed is not None else last_loss(run)
    rate, step_s = _pace(steps, plan)
    total = whole(plan.get("total_steps")) or _told_length(events, step)
    validation, best = _validations(events)
    saved = _checkpoints(run, events)
    begun = [event for event in events if event.get("kind") == "training_started"]
    eta = max(0.0, (total - step) * step_s) if state == "running" and total and step_s is not None else None
    return RunState(
        name=run.name,
        path=str(run.root),
        recipe=words(job.get("recipe")),
        state=state,
        exit_code=whole(end.get("exit_code")) if end else None,
        why=words(end.get("why")) if end else None,
        cause=_last_cause(events) if state == "failed" else None,
        started=_first_time(events),
        ended=None if state == "running" else _last_time(events, steps),
        step=step,
        total_steps=total,
        samples=samples,
        tokens_per_sample=whole(plan.get("tokens_per_sample")),
        world_size=whole(plan.get("world_size", section(job.get("launch")).get("world_size"))),
        loss=loss,
        validation=validation,
        best=best,
        best_checkpoint=next((s.path for s in saved if best and s.step == best.step and s.is_there), None),
        rate_samples_s=rate,
        rate_steps_s=1 / step_s if step_s else None,
        eta_s=eta,
        attempts=sum(event.get("kind") == "attempt_started" for event in events),
        from_memory=sum(event.get("source") == "memory" for event in begun),
        redone_steps=sum(whole(event.get("redone")) or 0 for event in begun),
        incidents=sum(event.get("kind") == "incident" for event in events),
        checkpoints=saved,
        ranks=_ranks(run, beats, state),
        findings=sum(event.get("kind") == "finding" for event in events),
    )


def last_end(events: list[Event]) -> Event | None:
    """Return how the run ended, or None when it never did or was started again since."""
    for event in reversed(events):
        if event.get("kind") == "run_ended":
            return event
        if event.get("kind") in STARTS:
            return None
    return None


def _last_cause(events: list[Event]) -> Cause | None:
    """Return what the last incident says; a history that somebody has written by hand may say anything."""
    last = next((event for event in reversed(events) if event.get("kind") == "incident"), {})
    code = words(last.get("code"))
    facts = {str(name): str(value) for name, value in section(last.get("facts")).items()}
    return None if code is None else Cause(code=code, facts=facts, rank=whole(last.get("rank")))


def is_supervised(run: RunDir) -> bool:
    """Say whether somebody still looks after the run."""
    lease = read_record(run.lease)
    if not lease:
        return False
    is_alive = look_up(lease)
    if is_alive is not None:
        return is_alive
    # The pid of another host or container means nothing here. A lock does, within one machine; else the files do.
    if is_same_kernel(lease) and (is_taken := is_locked(run.root)) is not None:
        return is_taken
    return time.time() - max(_moved(run)) < _FRESH_S


def _is_starting(run: RunDir, events: list[Event]) -> bool:
    """Say whether the process that began or resumed the run last is still about to supervise it."""
    if not events:  # made a moment ago, and its history not begun
        return not any(run.root.glob("ranks/*")) and time.time() - max(_moved(run, run.root)) < _STARTS_S
    started = next((event for event in reversed(events) if event.get("kind") in STARTS), {})
    starter = section(started.get("starter"))
    if not starter:
        return False
    is_alive = look_up(starter)
    return time.time() - number(started.get("t")) < _FRESH_S if is_alive is None else is_alive


def _moved(run: RunDir, *others: Path) -> list[float]:
    times = [0.0]
    for place in (*others, run.events, run.lease, *(run.metrics(rank) for rank in run.ranks())):
        with contextlib.suppress(OSError):
            times.append(place.stat().st_mtime)
    return times


def _state(run: RunDir, end: Event | None, events: list[Event]) -> State:
    # A supervisor that holds the run after its end has come to resume it, or is about to let go.
    if is_supervised(run):
        return "running"
    if end is not None:
        found = end.get("state")
        return next((state for state in ENDED if state == found), "failed")
    return "running" if _is_starting(run, events) else "lost"


def _position(steps: Columns, beat: Beat | None, end: Event | None) -> tuple[int, int | None, float | None]:
    """Return step, samples and loss from the freshest source."""
    num = len(steps["step"])
    step = int(steps["step"][-1]) if num else 0
    samples = int(steps["samples"][-1]) if num and math.isfinite(steps["samples"][-1]) else None
    loss = steps["loss"][-1] if num else None
    attempt = int(steps["a"][-1]) if num else 0
    # The page is ahead of the file by up to one flush; a beat of step 0 has no loss yet.
    if beat and beat.step and (beat.attempt > attempt or (beat.attempt == attempt and beat.step > step)):
        step, samples, loss = beat.step, beat.samples, beat.loss
    if not num and end is not None:
        step = whole(end.get("steps")) or step
    return step, samples, loss


def _told_length(events: list[Event], step: int) -> int | None:
    """Return how long a program without a plan said it would be; what it has passed was something else."""
    told = next((event for event in reversed(events) if event.get("kind") == "length"), {})
    total = whole(told.get("total_steps"))
    return total if total is not None and total >= step else None


def _last_printed(steps: Columns) -> float | None:
    """Return the last loss that a line of the program held: the hook counts its steps, but does not know their loss."""
    return next((loss for loss in reversed(steps["loss"]) if not math.isnan(loss)), None)


def _pace(steps: Columns, plan: dict[str, Any]) -> tuple[float | None, float | None]:
    """Return samples per second and seconds per step over the last own steps."""
    times = [own_step_s(steps, i) for i in range(max(0, len(steps["step"]) - _RECENT_STEPS), len(steps["step"]))]
    times = [value for value in times if 0 < value < math.inf]
    if not times:
        return None, None
    step_s = math.fsum(times) / len(times)
    batch = whole(plan.get("batch_samples"))
    return (batch / step_s if batch else None), step_s


def _validations(events: list[Event]) -> tuple[Measure | None, Measure | None]:
    found = held_validations(events)
    last = _measure(found[-1]) if found else None
    bests = [event for event in found if event.get("best")]
    return last, _measure(bests[-1]) if bests else None


def held_validations(events: Iterable[Event]) -> list[Event]:
    """Return the validations of the steps that still count, in their order.

    Those of steps it was taken back behind are no longer of its weights, also where it never comes to the step again.
    What a program of the user's own prints is all kept: its steps may begin again with every epoch, and it may tell of
    one validation in several lines.
    """
    held: list[Event] = []
    for event in events:
        kind, step = event.get("kind"), whole(event.get("step"))
        is_check = kind == "validation" and bool(section(event.get("measures")))
        if step is None or not (is_check or kind in ("training_started", "rolled_back")):
            continue
        while held and held[-1]["step"] > step - is_check and not event.get("is_printed"):
            held.pop()
        if is_check:
            held.append(event)
    return held


def best_measure(event: Event) -> str:
    """Return the name of the measure that decides: named by the event, or else its first."""
    name = str(event.get("measure"))
    return name if name in event["measures"] else str(next(iter(event["measures"])))


def _measure(event: Event) -> Measure:
    name = best_measure(event)
    sense: Literal["min", "max"] = "max" if event.get("sense") == "max" else "min"
    value = number(event["measures"][name])
    return Measure(name=name, value=value, step=whole(event.get("step")) or 0, sense=sense)


def _checkpoints(run: RunDir, events: list[Event]) -> tuple[Saved, ...]:
    saved: dict[int, Saved] = {}
    for event in events:
        step = whole(event.get("step"))
        if event.get("kind") != "checkpoint_committed" or step is None:
            continue
        # The directory may have been moved since: only the folder's name is trusted, and only if it is still there.
        place = run.checkpoints / Path(str(event.get("path", ""))).name
        saved[step] = Saved(
            step=step,
            path=str(place),
            num_bytes=whole(event.get("bytes")) or 0,
            t=number(event.get("t")),
            stall_s=number(event.get("stall_s")),
            write_s=number(event.get("write_s")),
            is_there=place != run.checkpoints and _is_folder(place),
        )
    return tuple(saved[step] for step in sorted(saved))


def _is_folder(place: Path) -> bool:
    try:
        return place.is_dir()
    except (OSError, ValueError):  # not ours to look into, or a name that no file can have
        return False


def _ranks(run: RunDir, beats: dict[int, Beat], state: State) -> tuple[RankState, ...]:
    lease = read_record(run.lease)
    can_compare = bool(lease) and lease.get("boot_id") == boot_id() and state == "running"
    now = time.monotonic_ns()
    return tuple(
        RankState(
            rank=rank,
            attempt=beat.attempt,
            phase=beat.phase,
            step=beat.step,
            age_s=max(0.0, (now - beat.monotonic_ns) / 1e9) if can_compare else None,
        )
        for rank, beat in beats.items()
    )


def _first_time(events: list[Event]) -> float | None:
    return next((t for event in events if math.isfinite(t := number(event.get("t")))), None)


def _last_time(events: list[Event], steps: Columns) -> float | None:
    times = [*(number(event.get("t")) for event in events[-1:]), *steps["t"][-1:]]
    return max((t for t in times if math.isfinite(t)), default=None)
