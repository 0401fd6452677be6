"""Which GPUs a process sees, which of them a run takes, and who holds the others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final, Literal, TypeVar

from headway.errors import CheckError
from headway.machine.record import Gpu, GpuProcess, MachineReport
from headway.messages import say
from headway.units import duration, size

HELD_BYTES = 512 << 20
"""A process that holds more than this is at work; a desktop or a monitor holds less."""
UNSEEN_BYTES = 2 << 30
"""Memory in use that no process we can see explains. Drivers reserve up to 0.6 GiB of a large GPU for themselves."""
BUSY_PERCENT = 25
"""A desktop draws up to a few per cent; training is above this in any sample of a second."""
BUSY_MEMORY_PERCENT = 10
"""Share of the memory, where no bytes are reported, above which somebody is there; the driver keeps some per cent."""

_NUMBER: Final = re.compile(r"\+?\d+")
"""CUDA reads a number as far as it goes: `1gpu` is 1."""
Value = TypeVar("Value")


def is_free(gpu: Gpu) -> bool:
    """Whether a run may take this GPU without asking: nobody else works on it."""
    if gpu.lost or gpu.claim is not None:
        return False
    # Programs that only draw are not at work; what a screen holds counts as memory without an owner.
    computing = [process for process in gpu.processes if process.kind != "G"]
    held = sum(process.held_bytes or 0 for process in computing)
    unseen = (gpu.used_bytes or 0) - held
    at_work = any(process.held_bytes is None or process.held_bytes > HELD_BYTES for process in computing)
    # A process whose memory cannot be read (a container, WSL) counts by what the GPU says is in use.
    if at_work and all(process.held_bytes is None for process in computing) and gpu.used_bytes is not None:
        at_work = gpu.used_bytes > UNSEEN_BYTES
    has_room = unseen <= UNSEEN_BYTES and (gpu.used_percent or 0) < BUSY_MEMORY_PERCENT
    return not at_work and has_room and (gpu.utilisation or 0) <= BUSY_PERCENT


def can_use_gpus(report: MachineReport) -> bool:
    """Whether the ranks' framework was built for GPUs at all."""
    return report.framework.torch is None or report.framework.build != "cpu"


def pick_devices(report: MachineReport, wanted: Literal["auto"] | int | Sequence[int]) -> tuple[int, ...]:
    """Return the indexes of the GPUs to use; empty: train on CPU.

    Auto takes every free GPU, a number takes that many free ones, and indexes are taken as they are, busy or not:
    who names a GPU knows it.
    """
    if wanted == 0 or (not isinstance(wanted, str | int) and not wanted):
        return ()
    if wanted == "auto" and not (report.gpus and can_use_gpus(report)):
        return ()
    if not can_use_gpus(report):
        raise CheckError("machine/torch-cannot-gpu", torch=report.framework.torch, wanted=_wanted(wanted))
    free = [gpu for gpu in report.gpus if is_free(gpu)]
    if wanted == "auto":
        if not free:
            raise CheckError("machine/no-free-gpu", total=len(report.gpus), holders=list_holders(report.gpus))
        return tuple(gpu.index for gpu in free)
    if isinstance(wanted, int):
        return _pick_number(report, free, wanted)
    assert not isinstance(wanted, str)
    return _pick_named(report, tuple(wanted))


def _pick_number(report: MachineReport, free: Sequence[Gpu], wanted: int) -> tuple[int, ...]:
    if wanted > len(report.gpus):
        raise CheckError("machine/too-few-gpus", wanted=wanted, here=len(report.gpus), list=list_gpus(report.gpus))
    if wanted > len(free):
        busy = [gpu for gpu in report.gpus if gpu not in free]
        raise CheckError("machine/gpus-taken", wanted=wanted, free=len(free), holders=list_holders(busy))
    # Equal GPUs first: one of another kind would make all the others wait in every step.
    kinds = Counter((gpu.name, gpu.total_bytes) for gpu in free)
    equal = [gpu for gpu in free if kinds[(gpu.name, gpu.total_bytes)] >= wanted]
    if equal:
        first = (equal[0].name, equal[0].total_bytes)
        equal = [gpu for gpu in equal if (gpu.name, gpu.total_bytes) == first]
    return tuple(gpu.index for gpu in (equal or free)[:wanted])


def _pick_named(report: MachineReport, wanted: tuple[int, ...]) -> tuple[int, ...]:
    by_index = {gpu.index: gpu for gpu in report.gpus}
    for index in wanted:
        if index not in by_index:
            raise CheckError("machine/no-such-gpu", gpu=index, here=len(report.gpus), list=list_gpus(report.gpus))
        if by_index[index].lost:
            raise CheckError("machine/gpu-lost", gpu=index)
    if len(set(wanted)) < len(wanted):
        raise CheckError("machine/gpu-twice", wanted=_wanted(wanted))
    return wanted


def list_gpus(gpus: Sequence[Gpu]) -> str:
    """Return what is there: `0 NVIDIA H100 80GB HBM3, 1 …`; `-` when there is nothing."""
    return ", ".join(f"{gpu.index} {gpu.name or 'n/a'}" for gpu in gpus) or "-"


def list_alike(gpus: Sequence[Gpu]) -> str:
    """Return the indexes of the largest group of one kind, as `parallel.gpus` takes them; equal groups: the larger."""
    kinds = Counter((gpu.name, gpu.total_bytes) for gpu in gpus)
    best = max(kinds, key=lambda kind: (kinds[kind], kind[1] or 0))
    return ",".join(str(gpu.index) for gpu in gpus if (gpu.name, gpu.total_bytes) == best)


def list_holders(gpus: Sequence[Gpu]) -> str:
    """Return who holds which GPU: `0: ann, pid 4242 python, 70.1 GiB; 1: …`."""
    return "; ".join(f"{gpu.index}: {describe_holders(gpu)}" for gpu in gpus) or "-"


def describe_holders(gpu: Gpu) -> str:
    """Return who holds one GPU, the largest first; without names, what is in use."""
    if gpu.lost:
        return say("machine/state-lost")
    if gpu.claim is not None:
        return gpu.claim
    largest = sorted(gpu.processes, key=lambda one: -(one.held_bytes or 0))
    named = ", ".join(_describe(process) for process in largest[:2])
    more = f" (+{len(largest) - 2})" if len(largest) > 2 else ""
    if named:
        return named + more
    busy = f", {gpu.utilisation}%" if gpu.utilisation is not None else ""
    return f"{size(gpu.used_bytes)}{busy}"


def _describe(process: GpuProcess) -> str:
    held = size(process.held_bytes) if process.held_bytes else None
    age = f"({duration(process.age_s)})" if process.age_s is not None else None
    words = [process.user, f"pid {process.pid}", process.name, held, age]
    return " ".join(word for word in words if word)


def _wanted(wanted: object) -> str:
    return ",".join(map(str, wanted)) if isinstance(wanted, tuple | list) else str(wanted)


def apply_visible(gpus: Sequence[Gpu], value: str | None) -> tuple[Gpu, ...]:
    """Return the GPUs a process would see, renumbered in the order it would see them.

    Indexes and UUIDs (or their unique beginnings) may be mixed. CUDA stops at the first entry it does not know, so
    `0,-1,1` shows one GPU, and an entry given twice shows none.
    """
    if value is None:
        return tuple(gpus)
    seen: list[Gpu] = []
    for entry in list_visible(value):
        gpu = _find(gpus, entry)
        if gpu is None:
            break
        seen.append(gpu)
    if len({gpu.physical for gpu in seen}) < len(seen):
        return ()
    return tuple(replace(gpu, index=index) for index, gpu in enumerate(seen))


def count_visible(gpus: Sequence[Gpu], value: str | None) -> int:
    """Return how many devices a process would see; slices of a GPU (MIG) are counted as they are named."""
    named = list_visible(value or "")
    return len(named) if named and _is_slice(named[0]) else len(apply_visible(gpus, value))


def list_visible(value: str) -> tuple[str, ...]:
    """Return the devices that a value of CUDA_VISIBLE_DEVICES names, as CUDA reads it without knowing the machine.

    It stops at the first entry that cannot be a device: `0,-1,1` names one, `0,,1` too, and an empty value none. Slices
    of a GPU (MIG) and GPUs are not mixed: the first entry decides. A device that is named twice leaves none.
    """
    entries = [entry.strip() for entry in value.split(",")]
    is_slice = _is_slice(entries[0])
    named = list(takewhile(lambda entry: _is_device(entry) and _is_slice(entry) == is_slice, entries))
    return tuple(named) if len({name.upper() for name in named}) == len(named) else ()


def _is_device(entry: str) -> bool:
    return _NUMBER.match(entry) is not None or entry.upper().startswith(("GPU-", "MIG-"))


def _is_slice(entry: str) -> bool:
    return entry.upper().startswith("MIG-")


def _find(gpus: Sequence[Gpu], entry: str) -> Gpu | None:
    number = _NUMBER.match(entry)
    if number is not None:
        return next((gpu for gpu in gpus if gpu.physical == int(number[0])), None)
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
