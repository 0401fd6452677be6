"""Which GPUs CUDA_VISIBLE_DEVICES leaves in sight, read the way CUDA reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from headway.machine.record import Gpu

Value = TypeVar("Value")


def apply_visible(gpus: Sequence[Gpu], value: str | None) -> tuple[Gpu, ...]:
    """Return the GPUs a process would see, renumbered in the order it would see them.

    Indexes and UUIDs (or their unique beginnings) may be mixed. CUDA stops at the first entry it does not know, so
    `0,-1,1` shows one GPU, and an entry given twice shows none.
    """
    if value is None:
        return tuple(gpus)
    seen: list[Gpu] = []
    for entry in value.split(","):
        gpu = _find(gpus, entry.strip())
        if gpu is None:
            break
        seen.append(gpu)
    if len({gpu.physical for gpu in seen}) < len(seen):
        return ()
    return tuple(replace(gpu, index=index) for index, gpu in enumerate(seen))


def _find(gpus: Sequence[Gpu], entry: str) -> Gpu | None:
    if entry.isdecimal():
        return next((gpu for gpu in gpus if gpu.physical == int(entry)), None)
    if not entry.upper().startswith("GPU-"):
        return None
    matches = [gpu for gpu in gpus if gpu.uuid is not None and gpu.uuid.lower().startswith(entry.lower())]
    return matches[0] if len(matches) == 1 else None


def keep_pairs(pairs: Mapping[str, Value], gpus: Sequence[Gpu]) -> dict[str, Value]:
    """Return what is known about pairs of GPUs, by the numbers a process would see."""
    seen = {gpu.physical: gpu.index for gpu in gpus}
    kept = {}
    for pair, value in pairs.items():
        one, _, other = pair.partition("-")
        if one.isdecimal() and other.isdecimal() and int(one) in seen and int(other) in seen:
            low, high = sorted((seen[int(one)], seen[int(other)]))
            kept[f"{low}-{high}"] = value
    return kept
