"""When a loss or gradient is not a finite number: the twin of engine/guard.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any  # MindSpore's functions are untyped

import numpy as np

from headway.engine import policy
from headway.engine.mindspore.inputs import tensors_of
from headway.engine.mindspore.rank_state import Loaded, MindRun, resume
from headway.errors import TrainError
from headway.task.order import end_of_step

Gradient = Callable[..., Any]

_NAMED = 8
"""Most sample ids one rank names."""
_SHIFTS = (0, 16, 32, 48)


def answer(run: MindRun, gradient: Gradient, taken: Sequence[Loaded], start: int, what: str) -> bool:
    """Record the event, then do what `guard.policy` says; tell whether the run went back to a checkpoint."""
    rank, samples = _culprits(run, gradient, taken)
    found = policy.answer_guard(run.config.guard, run.progress, what=what, rank=rank, samples=samples)
    run.progress.guard_events += 1
    if run.ranks.rank == 0:
        run.reporter.event(found.event)
    if found.error is not None:
        raise found.error
    if found.is_roll_back:
        _roll_back(run, start, found.facts)
        return True
    run.progress.step += 1
    run.progress.position = end_of_step(start, run.plan.batch_samples, run.progress.skips)
    run.taken.extend(taken)
    return False


def _roll_back(run: MindRun, start: int, facts: dict[str, object]) -> None:
    """Go back to the newest checkpoint; this step's samples are left out from then on."""
    run.saver.wait()
    if run.saved_step is None:
        raise TrainError("engine/nothing-to-roll-back", **facts)
    before, end = run.progress, end_of_step(start, run.plan.batch_samples, run.progress.skips)
    resume(run)
    run.taken.clear()
    run.progress = policy.after_roll_back(run.progress, before, (start, end))
    if run.ranks.rank == 0:
        run.reporter.event({"kind": "rolled_back", "step": run.progress.step})
    if run.measured_step != run.progress.step:
        run.measured_step = None  # a later step of this number has other weights


def _culprits(run: MindRun, gradient: Gradient, taken: Sequence[Loaded]) -> tuple[int, list[int]]:
    """Return the first rank with samples whose own loss or gradient is not finite, and those samples."""
    kept, bad = run.keep_statistics(), []
    for part in taken:
        is_finite = _is_finite(run, gradient, part)
        # At once: with what a bad batch leaves in them every sample would look bad.
        run.put_statistics_back(kept)
        bad += [] if is_finite else _bad_samples(run, part)
    # Sixteen bits at a time, because what is sent has 24 bits of precision; and one more than the id: 0 is nobody.
    words = np.zeros((run.ranks.world_size, _NAMED, len(_SHIFTS)), np.float32)
    for place, one in enumerate(bad[:_NAMED]):
        words[run.ranks.rank, place] = [(one + 1 >> shift) & 0xFFFF for shift in _SHIFTS]
    for rank, rows in enumerate(run.ranks.sum(words).astype(np.int64).tolist()):
        named = [sum(word << shift for word, shift in zip(row, _SHIFTS, strict=True)) - 1 for row in rows if any(row)]
        if named:
            return rank, named
    return 0, []


def _is_finite(run: MindRun, gradient: Gradient, part: Loaded) -> bool:
    """Take a micro-batch through forward and backward once more, on this rank alone."""
    batch = run.data.arrays(part.ids, part.epochs)
    (total, _), grads = gradient(*tensors_of(run.task, batch))
    sums = [float(total.asnumpy()), *(float(np.abs(grad.asnumpy()).sum(dtype=np.float64)) for grad in grads)]
    return all(map(math.isfinite, sums))


def _bad_samples(run: MindRun, part: Loaded) -> list[int]:
    """Return the samples whose own loss is not finite; all of them when only a gradient is."""
    run.loss.set_train(False)
    batch, found = run.data.arrays(part.ids, part.epochs), []
    for row, one in enumerate(part.ids):
        # As many copies as the batch holds: another shape would be another graph to compile.
        same = {name: np.repeat(value[row : row + 1], len(part.ids), axis=0) for name, value in batch.items()}
        if not math.isfinite(float(run.loss(*tensors_of(run.task, same))[0].asnumpy())):
            found.append(int(one))
    run.loss.set_train(True)
    return found or [int(one) for one in part.ids]
