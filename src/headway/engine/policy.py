"""What the end of a step asks for, as pure functions of where the run is and what it was asked.

Both loops, PyTorch's and MindSpore's, only carry out the answers, in this order:

1. A step that has ended owes a validation, a trial, both or nothing: noted in `Progress` before anything else.
2. It is saved if a save is due, if it is the last, or if the ranks were asked to stop. So every checkpoint says what
   its step still owes, and a validation that runs out of memory does not cost the run its last steps.
3. Asked to stop, the run stops here.
4. The validation it owes is held, which may make it the best (saved, if it is not yet) or end the run early.
5. If the run is not over, the trial it owes is held, and the next step begins. If it is over, its last step is saved,
   if it is not yet, and the last trial is held.

A resumed run, and one that the guard took back to a checkpoint, begins at 4 with what the checkpoint says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol

from headway.config import EvalConfig, GuardConfig, RunConfig, SaveConfig
from headway.engine.progress import Progress
from headway.errors import TrainError

_OLDER_BESTS: Final = 16
"""Earlier best steps that are remembered; more saves than this cannot fail in a row without anybody noticing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What decides the end of every step, once a run is planned."""

    config: RunConfig
    total_steps: int
    in_epoch: int
    """Samples of one pass over the training set."""


def end_step(course: Course, progress: Progress, *, before: tuple[int, int]) -> Progress:
    """Return where the run is with what its step owes noted.

    Args:
        before: step and position before the step. A run that is not beyond this step was taken back to a checkpoint,
            and owes what that says.
    """
    step, position = before
    if progress.step <= step:
        return progress
    wish, is_last = course.config.eval, progress.step >= course.total_steps
    owes_validation = is_last or is_due(wish, progress, position, course.in_epoch)
    # The last trial of a run is held however it ends, so the last step owes none of its own.
    owes_trial = not is_last and is_multiple(progress.step, wish.trial_every)
    return replace(progress, owes_validation=owes_validation, owes_trial=owes_trial)


def choose_save(
    course: Course, progress: Progress, *, before: tuple[int, int], is_stop_wanted: bool, is_save_wanted: bool
) -> Literal["no", "if-free", "surely"]:
    """Say whether the step that has ended is saved: `surely` waits for an older save that is still being written."""
    step, position = before
    if is_stop_wanted or progress.step >= course.total_steps:
        return "surely"
    if progress.step <= step:
        return "no"
    wish = course.config.save
    if is_due(wish, progress, position, course.in_epoch):
        # Checkpoints counted in epochs are promised by name.
        return "if-free" if wish.every_epochs is None else "surely"
    return "if-free" if is_save_wanted else "no"


def judge(progress: Progress, value: float) -> Progress:
    """Return where the run is after the validation of its step; the smaller the value, the better."""
    is_best = math.isfinite(value) and (progress.best_value is None or value < progress.best_value)
    if not is_best:
        return replace(progress, owes_validation=False, stale=progress.stale + 1)
    older = [step for step in (progress.best_step, *progress.older_bests) if step is not None]
    return replace(
        progress,
        owes_validation=False,
        stale=0,
        best_value=value,
        best_step=progress.step,
        older_bests=older[:_OLDER_BESTS],
    )


class Standing(Protocol):
    """A run of either loop, brought to a snapshot or at its start."""

    progress: Progress
    measured_step: int | None
    saved_step: int | None

    @property
    def course(self) -> Course:
        """What decides the end of every step."""


def owe_last(run: Standing) -> None:
    """Let a run that begins at its end owe its last validation, unless the snapshot says what that found.

    It was stopped and then made no longer than it was: its last step was taken as one of many.
    """
    step = run.progress.step
    if 0 < step >= run.course.total_steps and not run.progress.owes_validation and run.measured_step != step:
        run.progress = replace(run.progress, owes_validation=True)
        run.saved_step = None  # the last checkpoint knows what its validation has found


def is_over(course: Course, progress: Progress) -> bool:
    """Say whether no step is left: all are taken, or the validations have not become better for long enough."""
    patience = course.config.eval.patience
    return progress.step >= course.total_steps or (patience is not None and progress.stale >= patience)


def early_stop_event(course: Course, progress: Progress) -> dict[str, Any] | None:
    """Return what tells the user why a run is over before its last step; none for one that is not."""
    if progress.step >= course.total_steps:
        return None
    best = "n/a" if progress.best_step is None else progress.best_step
    facts = {"step": progress.step, "stale": progress.stale, "best": best, "more": 2 * progress.stale}
    return {"kind": "warning", "code": "engine/stopped-early", "facts": facts}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardAnswer:
    """What follows a loss or gradient that is not a finite number."""

    event: dict[str, Any]
    error: TrainError | None
    """Why the run ends; none: it continues."""
    is_roll_back: bool
    facts: dict[str, object]
    """What the messages about it name."""


def answer_guard(wish: GuardConfig, progress: Progress, *, what: str, rank: int, samples: Sequence[int]) -> GuardAnswer:
    """Decide over a step that is not finite; the samples are of the first rank that has bad ones.

    The event is one more than `progress` knows of; whoever carries this out counts it.
    """
    step = progress.step + 1
    event = {"kind": "guard", "step": step, "rank": rank, "samples": list(samples), "policy": wish.policy, "what": what}
    facts: dict[str, object] = {"what": what, "rank": rank, "step": step}
    facts["samples"] = ", ".join(map(str, samples)) or "n/a"
    error = None
    if wish.policy == "stop":
        error = TrainError("engine/not-finite", **facts)
    elif progress.guard_events + 1 > wish.limit:
        error = TrainError("engine/not-finite-limit", limit=wish.limit, **facts)
    return GuardAnswer(event=event, error=error, is_roll_back=wish.policy == "rollback", facts=facts)


def after_roll_back(restored: Progress, before: Progress, left_out: tuple[int, int]) -> Progress:
    """Return where a run is that was taken back to a checkpoint: the samples of the bad step are left out from now
    on, and the guard's events stay counted, or a run could meet the same samples forever."""
    # The checkpoint may be older than an earlier roll-back and not know what that one left out.
    skips = sorted({*restored.skips, *before.skips, left_out})
    return replace(restored, guard_events=before.guard_events, skips=skips)


def is_save_time(wish: SaveConfig, *, saved_at: float, asked_at: float, now: float) -> bool:
    """Say whether this rank wants a save for the clock's or somebody's sake; one rank's wish is all ranks'."""
    is_due_by_clock = wish.every_s is not None and now - saved_at >= wish.every_s
    # A wish from outside stays until a save has begun after it: one that is under way then may hold it up.
    return is_due_by_clock or asked_at > saved_at


def is_suspect(progress: Progress, guard_events_saved: int) -> bool:
    """Say whether a checkpoint taken now is marked: a guard fired since the one before. One proven best never is."""
    return progress.guard_events > guard_events_saved and progress.best_step != progress.step


def is_due(wish: EvalConfig | SaveConfig, progress: Progress, position: int, in_epoch: int) -> bool:
    """Say whether a validation or checkpoint falls on the step that has just ended.

    An epoch that ends inside a step counts when the step does, so no remainder adds up over many epochs; one that ends
    inside samples that are left out counts with the step after them.

    Args:
        position: where the step before had ended.
        in_epoch: samples of one pass over the training set.
    """
    if is_multiple(progress.step, wish.every):
        return True
    if wish.every_epochs is None:
        return False
    span = max(1, round(wish.every_epochs * in_epoch))
    return progress.position // span > position // span


def is_multiple(step: int, every: int) -> bool:
    """Say whether so many steps have passed again; 0 never."""
    return every > 0 and step % every == 0


def refuse_empty(held_out: Sized) -> None:
    """Refuse to begin what could not be validated at its end."""
    if len(held_out) == 0:
        raise TrainError("engine/no-validation-samples")
