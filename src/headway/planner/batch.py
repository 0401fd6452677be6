"""The arithmetic of the batch: per device, accumulation and total; any two give the third.

total = ranks * per_device * accumulation, in samples; in tokens that times the tokens of one sample.
What does not divide is refused with the nearest settings that do, never rounded: a batch that changes by itself
changes the training.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from headway.config import BatchConfig
from headway.errors import PlanError

DEFAULT_PER_DEVICE = 8
"""Micro-batch when nothing is given: small enough for a first try on any device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch that divides: samples == ranks * per_device * accumulation."""

    per_device: int
    accumulation: int
    samples: int
    """Samples of one optimizer step, all ranks."""
    tokens: int | None
    """The same in tokens, where a sample has a number of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWish:
    """What was asked for, and the numbers it must divide by."""

    per_device: int | None = None
    total: int | None = None
    """In `unit`."""
    accumulation: int | None = None
    unit: Literal["samples", "tokens"] = "samples"
    world_size: int = 1
    tokens_per_sample: int | None = None
    spelling: Mapping[str, str] | None = None
    """The guide's own names of the keys, where the user wrote those: `batch.total` -> `total_batch_size`."""

    @property
    def unit_size(self) -> int:
        """How many of the unit are in one sample."""
        if self.unit == "samples":
            return 1
        if self.tokens_per_sample is None:
            raise PlanError("plan/no-tokens", total=self.total if self.total is not None else "n/a")
        return self.tokens_per_sample


def wish_batch(
    config: BatchConfig, *, world_size: int, tokens_per_sample: int | None, spelling: Mapping[str, str] | None = None
) -> BatchWish:
    """Return what the config asks for on so many ranks."""
    return BatchWish(
        per_device=config.per_device,
        total=config.total,
        accumulation=config.accumulation,
        unit=config.unit,
        world_size=world_size,
        tokens_per_sample=tokens_per_sample,
        spelling=spelling,
    )


def resolve_batch(wish: BatchWish) -> Batch:
    """Return the batch, or refuse with the three nearest ones that divide.

    One number or none: accumulation is 1, and per_device is 8 when the total does not give it.
    """
    per_device, accumulation = wish.per_device, wish.accumulation
    if wish.total is None:
        return _batch(wish, per_device or DEFAULT_PER_DEVICE, accumulation or 1)
    samples = Fraction(wish.total, wish.unit_size)
    if per_device is not None and accumulation is not None:
        if samples != wish.world_size * per_device * accumulation:
            raise _refuse(wish, "plan/batch-disagrees")
        return _batch(wish, per_device, accumulation)
    known = per_device or accumulation or 1
    rest = samples / (wish.world_size * known)
    if rest.denominator != 1:
        raise _refuse(wish, "plan/batch-does-not-divide")
    if per_device is not None:
        return _batch(wish, per_device, rest.numerator)
    return _batch(wish, rest.numerator, known)


def keep_total(
    batch: Batch,
    *,
    world_size: int,
    largest: int | None = None,
    unit: Literal["samples", "tokens"] = "samples",
    can_be_uneven: bool = False,
) -> Batch:
    """Return the same total on another number of ranks, with the largest micro-batch not above the old one.

    The effective batch is part of the training, the number of ranks is not; memory was known to be enough for the
    old micro-batch.

    Args:
        largest: a micro-batch that is known to be possible, where that is not the old one.
        can_be_uneven: where the total does not divide, some ranks may take one micro-batch more than others.
    """
    share, rest = divmod(batch.samples, world_size)
    if rest and can_be_uneven and batch.samples > world_size:
        most = min(batch.per_device if largest is None else largest, batch.samples // world_size)
        per_device = max(divisor for divisor in _divisors(batch.samples) if divisor <= most)
        accumulation = -(-batch.samples // (per_device * world_size))
        return Batch(per_device=per_device, accumulation=accumulation, samples=batch.samples, tokens=batch.tokens)
    if rest:
        tokens = batch.tokens // batch.samples if batch.tokens else None
        total = batch.tokens if unit == "tokens" and batch.tokens else batch.samples
        wish = BatchWish(total=total, unit=unit, world_size=world_size, tokens_per_sample=tokens)
        raise _refuse(wish, "plan/batch-does-not-divide")
    largest = batch.per_device if largest is None else largest
    per_device = max(divisor for divisor in _divisors(share) if divisor <= largest)
    return Batch(per_device=per_device, accumulation=share // per_device, samples=batch.samples, tokens=batch.tokens)


def suggest_batches(wish: BatchWish) -> tuple[Batch, ...]:
    """Return the three nearest batches that divide: by ratio, and in doubt those that keep the total."""
    assert wish.total is not None, "only a total can fail to divide"
    samples = Fraction(wish.total, wish.unit_size)
    found = {(batch.per_device, batch.accumulation): batch for batch in _candidates(wish, samples)}
    return tuple(sorted(found.values(), key=lambda batch: _distance(wish, samples, batch))[:3])


def write_batch(wish: BatchWish, batch: Batch) -> str:
    """Return the settings ready to paste, under the names that the user wrote: `batch.per_device=12 …`."""
    settings = {"batch.per_device": batch.per_device, "batch.total": batch.samples * wish.unit_size}
    if wish.accumulation is not None:  # it must change too, or the three would disagree
        settings["batch.accumulation"] = batch.accumulation
    names = wish.spelling or {}
    words = (f"--{names[key]}={value}" if key in names else f"{key}={value}" for key, value in settings.items())
    return " ".join(words)


def _batch(wish: BatchWish, per_device: int, accumulation: int) -> Batch:
    samples = wish.world_size * per_device * accumulation
    tokens = samples * wish.tokens_per_sample if wish.tokens_per_sample else None
    return Batch(per_device=per_device, accumulation=accumulation, samples=samples, tokens=tokens)


def _candidates(wish: BatchWish, samples: Fraction) -> Iterator[Batch]:
    """Yield batches that keep the total, and batches that keep what was given beside it."""
    share = samples / wish.world_size
    if share.denominator == 1:
        for divisor in _divisors(share.numerator):
            yield _batch(wish, divisor, share.numerator // divisor)
    per_device, accumulation = wish.per_device, wish.accumulation
    known = per_device or accumulation or 1
    middle = math.floor(share / known)
    for rest in range(max(1, middle - 1), middle + 4):
        yield _batch(wish, per_device, rest) if per_device else _batch(wish, rest, known)
    if per_device and accumulation:
        yield _batch(wish, per_device, accumulation)


def _distance(wish: BatchWish, samples: Fraction, batch: Batch) -> tuple[float, int, int]:
    """Return how far a batch is from the wish, as a ratio; ties go to the kept total, then to less memory."""
    far = abs(math.log(batch.samples / samples))
    if wish.per_device is not None:
        far += abs(math.log(batch.per_device / wish.per_device))
    if wish.accumulation is not None or wish.per_device is None:
        far += abs(math.log(batch.accumulation / (wish.accumulation or 1)))
    return round(far, 9), int(batch.samples != samples), batch.per_device


def _divisors(number: int) -> list[int]:
    # No batch has a million micro-batches; without an end, a total of 10^18 would be searched for minutes.
    small = [divisor for divisor in range(1, min(math.isqrt(number), 1_000_000) + 1) if number % divisor == 0]
    return sorted({*small, *(number // divisor for divisor in small)})


def _refuse(wish: BatchWish, code: str) -> PlanError:
    """Return the refusal with both numbers and what to type instead."""
    size = wish.unit_size
    known = (wish.per_device or 1) * (wish.accumulation or 1)
    factors = {
        "world_size": wish.world_size,
        "batch.per_device": wish.per_device,
        "batch.accumulation": wish.accumulation,
        "tokens_per_sample": size if wish.unit == "tokens" else None,
    }
    lines = [write_batch(wish, batch) for batch in suggest_batches(wish)]
    return PlanError(
        code,
        total=wish.total,
        unit=wish.unit,
        multiple=wish.world_size * known * size,
        factors=" × ".join(f"{name}={value}" for name, value in factors.items() if value is not None),
        choices="\n".join(f"  {line}" for line in lines),
    )
