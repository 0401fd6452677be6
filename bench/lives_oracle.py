"""What must be true of a life in `run_lives.py`, by arithmetic of its own: no curve, length or rule is imported."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headway.task.order import Order, expected_ledger
from lives_draw import Keys, Length, Precision

FIRST_SCALE = 2.0**20
"""Loss scale that lives in fp16 begin with: so large that the first steps of some overflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """From a step on, until the next part."""

    step: int
    batch: int
    length: Length
    precision: Precision = "fp32"


@dataclass(slots=True)
class Book:
    """What the commands of a life asked for, step by step."""

    keys: Keys
    parts: list[Part] = field(default_factory=list)

    def begin(self, step: int, batch: int, length: Length, precision: Precision) -> None:
        """Note a command that continues after a step: later parts are undone."""
        self.parts = [part for part in self.parts if part.step < step]
        self.parts.append(Part(step=step, batch=batch, length=length, precision=precision))

    def part_of(self, step: int) -> Part:
        """Return the part a step belongs to."""
        return next(part for part in reversed(self.parts) if part.step < step)

    def scaled_since(self, step: int) -> int:
        """Return the step after which all steps up to this one were taken in fp16: its scale begins there."""
        others = [place for place, part in enumerate(self.parts) if part.precision != "fp16" and part.step < step]
        return self.parts[others[-1] + 1].step if others and others[-1] + 1 < len(self.parts) else 0

    def trained(self, step: int) -> int:
        """Return the samples of the first steps."""
        ends = [*(part.step for part in self.parts[1:]), math.inf]
        spans = ((part.batch, min(step, end) - part.step) for part, end in zip(self.parts, ends, strict=True))
        return int(sum(batch * steps for batch, steps in spans if steps > 0))

    def total_steps(self, part: Part | None = None) -> int:
        """Return the last step, unless the run stops early."""
        part = part or self.parts[-1]
        if part.length.key == "steps":
            return int(part.length.value)
        left = self._samples(part.length) - self.trained(part.step)
        return part.step + max(0, math.ceil(left / part.batch))

    def lr(self, step: int) -> float:
        """Return the learning rate of a step."""
        keys, part = self.keys, self.part_of(step)
        begun = self.trained(step - 1)
        if part.length.key == "steps":
            total = self.trained(part.step) + (int(part.length.value) - part.step) * part.batch
        else:
            total = self._samples(part.length)
        rise = self._rise(part)
        if keys.schedule == "constant":
            factor = 1.0
        elif keys.schedule == "multistep":
            factor = 0.1 ** bisect_right([share * total for share in keys.milestones], begun)
        elif keys.schedule == "cosine":
            done = (begun - rise) / (total - rise) if total > rise else 0.0
            factor = keys.final + (1 - keys.final) * (1 + math.cos(math.pi * min(1.0, max(0.0, done)))) / 2
        else:
            factor = keys.final + (1 - keys.final) * min(1.0, max(0.0, (total - begun) / (keys.decay * total)))
        ended = begun + part.batch
        return keys.base * factor * (ended / rise if ended < rise else 1.0)

    def _samples(self, length: Length) -> int:
        return int(length.value) if length.key == "samples" else max(1, round(length.value * self.keys.size))

    def _rise(self, part: Part) -> int:
        if self.keys.warmup is None:
            return 0
        unit, value = self.keys.warmup
        if unit == "samples":
            return value
        if part.step >= value:
            return self._rise(self.part_of(part.step))
        return self.trained(part.step) + (value - part.step) * part.batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a life left behind, of all its runs."""

    rows: Mapping[int, Mapping[str, float]]
    """Metrics by step."""
    validations: Mapping[int, float]
    """Value of the deciding measure by step."""
    guard_steps: frozenset[int]
    step: int
    """Of the newest checkpoint."""
    samples: int
    ledger: str
    progress: Mapping[str, Any]
    scale: float | None
    """Loss scale of the newest checkpoint."""
    saved: frozenset[int]
    """Steps whose checkpoints are there."""
    began: int
    """Step at which the last run of the life was forked."""
    state: str
    exit_code: int
    shown_best: int | None
    """Best step as `headway runs` has it, of the last run of the life alone."""


def find_wrong(book: Book, facts: Facts, former_ends: frozenset[int]) -> Iterator[str]:
    """Yield what is not as it must be, for a life that has come to its end.

    Args:
        former_ends: last steps of earlier, shorter lengths: a validation there was right when it was held.
    """
    keys = book.keys
    last = facts.step
    if (facts.state, facts.exit_code) != ("done", 0):
        yield f"ended as {facts.state} with exit code {facts.exit_code}"
    expected = last_step(book, facts)
    if last != expected:
        yield f"the last step is {last}, not {expected}"
        return
    yield from _wrong_rows(book, facts)
    yield from _wrong_samples(book, facts)
    due = set(_due(book, facts)) | {last}
    held = set(facts.validations)
    if not due <= held or not held <= due | former_ends:
        yield f"validations at {sorted(held)}, due at {sorted(due)}"
    owes = bool(facts.progress["owes_validation"])
    known = {step: value for step, value in facts.validations.items() if step < last or not owes}
    best, value, stale = judge(known)
    found = facts.progress["best_step"], facts.progress["best_value"], facts.progress["stale"]
    if found != (best, value, stale):
        yield f"best step, value and stale validations are {found}, not {(best, value, stale)}"
    best, _, _ = judge(facts.validations)
    if not facts.began and facts.shown_best != best:
        yield f"the best step is shown as {facts.shown_best}, not {best}"
    if keys.keep_best and best is not None and best >= max(1, facts.began) and best not in facts.saved:
        yield f"the best step {best} is not among the checkpoints {sorted(facts.saved)}"


def last_step(book: Book, facts: Facts) -> int:
    """Return the step at which the run must end: the last one, or where its patience is used up."""
    total = book.total_steps()
    patience = book.keys.patience
    held: dict[int, float] = {}
    for step, value in sorted(facts.validations.items()):
        held[step] = value
        if patience is not None and judge(held)[2] >= patience:
            return max(min(step, total), book.parts[-1].step)
    return max(total, book.parts[-1].step)


def judge(validations: Mapping[int, float]) -> tuple[int | None, float | None, int]:
    """Return the best step, its value and how many validations came after it without a better one."""
    best: int | None = None
    value: float | None = None
    stale = 0
    for step, found in sorted(validations.items()):
        if math.isfinite(found) and (value is None or found < value):
            best, value, stale = step, found, 0
        else:
            stale += 1
    return best, value, stale


def bad_step(book: Book, upto: int) -> int | None:
    """Return the first step whose batch holds a sample that is not a number, where nothing is left out."""
    order = Order(book.keys.size, 0)
    for step in range(1, upto + 1):
        ids, _ = order.samples(np.arange(book.trained(step - 1), book.trained(step)))
        if set(ids.tolist()) & set(book.keys.bad):
            return step
    return None


def _wrong_rows(book: Book, facts: Facts) -> Iterator[str]:
    missing = [step for step in range(1, facts.step + 1) if step not in facts.rows]
    skipped = set(missing) - (facts.guard_steps if book.keys.policy == "skip" else frozenset())
    # A step whose gradients were too large for fp16 updates nothing and halves the scale, once.
    others = sorted(step for step in skipped if book.part_of(step).precision != "fp16")
    if others:
        yield f"steps without a row, and not in fp16: {others}"
    last = book.part_of(facts.step).precision
    if facts.step == book.parts[-1].step:
        last = book.parts[-1].precision if (facts.scale is None) == (book.parts[-1].precision != "fp16") else last
    if (facts.scale is None) != (last != "fp16"):
        yield f"the loss scale is {facts.scale} in {last}"
    halved = sorted(step for step in skipped if step > book.scaled_since(facts.step))
    overflows = 0 if facts.scale is None else round(math.log2(FIRST_SCALE / facts.scale))
    if facts.scale is not None and len(halved) != overflows:
        yield f"steps without a row: {halved}, but the loss scale was halved {overflows} times"
    beyond = sorted(step for step in facts.rows if step > facts.step)
    if beyond:
        yield f"rows beyond the last step: {beyond}"
    for step in sorted(set(facts.rows) & set(range(1, facts.step + 1))):
        found, want = facts.rows[step]["lr"], book.lr(step)
        if not math.isclose(found, want, rel_tol=1e-6, abs_tol=1e-12):
            yield f"learning rate of step {step} is {found:.6g}, not {want:.6g}"
            return


def _wrong_samples(book: Book, facts: Facts) -> Iterator[str]:
    """Yield where samples were lost, repeated or left out without a reason."""
    keys = book.keys
    order = Order(keys.size, 0)
    skips = [(int(low), int(high)) for low, high in facts.progress["skips"]]
    left_out = sum(max(0, min(high, facts.samples) - low) for low, high in skips)
    if facts.samples - left_out != book.trained(facts.step):
        yield f"trained on {facts.samples} - {left_out} samples, not on {book.trained(facts.step)}"
    if int(facts.ledger, 16) != expected_ledger(order, facts.samples, skips):
        yield "the ledger is not that of every sample exactly once an epoch"
    for low, high in skips:
        ids, _ = order.samples(np.arange(low, high))
        if not set(ids.tolist()) & set(keys.bad):
            yield f"samples {low} to {high} were left out and none of them is bad"
    before = 0
    for step in range(1, facts.step + 1):
        row = facts.rows.get(step)
        now = int(row["samples"]) if row else _end(before, book.part_of(step).batch, skips)
        gap = now - before - book.part_of(step).batch
        if gap and not any((low <= before and before + gap <= high) or before <= low for low, high in skips):
            yield f"step {step} begins {gap} samples after the one before has ended"
        before = now


def _end(start: int, batch: int, skips: list[tuple[int, int]]) -> int:
    """Return the position behind so many samples, those that are left out not counted."""
    for low, high in skips:
        if high > start and low < start + batch:
            start, batch = high, batch - max(0, low - start)
    return start + batch


def _due(book: Book, facts: Facts) -> Iterator[int]:
    """Yield the steps at which a validation was asked for."""
    keys = book.keys
    span = max(1, round((keys.eval_epochs or 0.0) * keys.size))
    skips = sorted((int(low), int(high)) for low, high in facts.progress["skips"])
    before = 0
    for step in range(1, facts.step + 1):
        row = facts.rows.get(step)
        now = int(row["samples"]) if row else _end(before, book.part_of(step).batch, skips)
        if (keys.eval_every and step % keys.eval_every == 0) or (
            keys.eval_epochs is not None and now // span > before // span
        ):
            yield step
        before = now
