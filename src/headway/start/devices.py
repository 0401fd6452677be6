"""GPUs for a run: free ones, claimed so that another run does not take them a second later."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from headway.errors import CheckError, UsageError
from headway.launch import Claims
from headway.machine import (
    FirstOf,
    Gpu,
    GpuDriver,
    MachineReport,
    NvmlDriver,
    SmiDriver,
    apply_visible,
    describe_holders,
    is_free,
)
from headway.messages import say

_POLL_S: Final = 5.0
_TELL_S: Final = 60.0
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
"""What it hides already, a container's or a scheduler's share, is not taken."""


def read_gpus(driver: GpuDriver | None = None) -> tuple[Gpu, ...]:
    """Return the GPUs of this machine, in the driver's order."""
    reading = (driver or FirstOf((NvmlDriver(), SmiDriver()))).read()
    return () if reading is None else reading.gpus


def choose_devices(
    wanted: str, claims: Claims, driver: GpuDriver | None = None, environ: Mapping[str, str] = os.environ
) -> tuple[str, ...]:
    """Return what `--gpus` names: `0,1` and UUIDs as they are, a number as that many free ones."""
    if not wanted.isdigit():
        names = tuple(name.strip() for name in wanted.split(",") if name.strip())
        for name in names:
            if not name.isdigit() and not name.upper().startswith(("GPU-", "MIG-")):
                raise UsageError("run/bad-gpus", value=name)
        return _claim_named(names, read_gpus(driver), claims)
    gpus = apply_visible(read_gpus(driver), environ.get(_VISIBLE))
    if len(gpus) < int(wanted):
        raise CheckError("run/too-few-gpus", wanted=wanted, here=len(gpus))
    found, holders = _claim_free(int(wanted), gpus, claims)
    if found is None:
        raise CheckError("run/too-few-free", wanted=wanted, holders=holders)
    return found


def wait_for_devices(
    number: int,
    claims: Claims,
    tell: Callable[[str], None],
    *,
    environ: Mapping[str, str] = os.environ,
    driver: GpuDriver | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[str, ...]:
    """Wait until that many GPUs are free, saying once a minute who holds the others."""
    told = -_TELL_S
    while True:
        gpus = apply_visible(read_gpus(driver), environ.get(_VISIBLE))
        if len(gpus) < number:
            raise CheckError("run/too-few-gpus", wanted=number, here=len(gpus))
        found, holders = _claim_free(number, gpus, claims)
        if found is not None:
            return found
        if time.monotonic() - told >= _TELL_S:
            told = time.monotonic()
            tell(say("run/waiting", wanted=number, holders=holders))
        sleep(_POLL_S)


def claim_one(
    claims: Claims, *, environ: Mapping[str, str] = os.environ, driver: GpuDriver | None = None
) -> tuple[dict[str, str], str]:
    """Claim a free GPU for a process of its own; return the variables that show it alone, and who holds the others.

    Without a GPU that this process sees, and with slices of one (MIG), nothing is set; where all are held, none is
    shown.
    """
    gpus = apply_visible(read_gpus(driver), environ.get(_VISIBLE))
    if not gpus:
        return {}, ""
    found, holders = _claim_free(1, gpus, claims)
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", _VISIBLE: ",".join(found or ())}, "" if found else holders


def _is_named(gpu: Gpu, name: str) -> bool:
    """Say whether an index or a UUID, which may be shortened as CUDA allows it, means this GPU."""
    if name.isdigit():
        return gpu.physical == int(name)
    return gpu.uuid is not None and gpu.uuid.lower().startswith(name.lower())


def _alike_first(gpus: Sequence[Gpu], number: int) -> list[Gpu]:
    """Put kinds of which enough are free first: one of another kind makes all the others wait in every step."""
    kinds = Counter((gpu.name, gpu.total_bytes) for gpu in gpus if is_free(gpu))
    return sorted(gpus, key=lambda gpu: kinds[(gpu.name, gpu.total_bytes)] < number)


def _claim_free(number: int, gpus: Sequence[Gpu], claims: Claims) -> tuple[tuple[str, ...] | None, str]:
    """Claim that many free GPUs, or none of them; return also who holds the others."""
    taken: list[str] = []
    held: list[str] = []
    for gpu in _alike_first(gpus, number):
        if len(taken) == number:
            break
        if not is_free(gpu):
            held.append(f"{gpu.physical}: {describe_holders(gpu)}")
            continue
        holder = claims.take(_claim_name(gpu))
        if holder is None:
            taken.append(str(gpu.physical))
        else:
            held.append(f"{gpu.physical}: {_name_holder(holder)}")
    if len(taken) == number:
        return tuple(sorted(taken, key=int)), ""
    claims.release("gpu-")
    return None, "; ".join(held) or "n/a"


def _claim_named(names: tuple[str, ...], gpus: Sequence[Gpu], claims: Claims) -> tuple[str, ...]:
    seen: set[str] = set()
    for name in names:
        thing = _thing(name, gpus)
        if thing in seen:
            raise UsageError("run/gpu-twice", name=name)
        seen.add(thing)
        holder = claims.take(thing)
        if holder is not None:
            raise CheckError("run/gpu-claimed", name=name, holder=_name_holder(holder))
    return names


def _thing(name: str, gpus: Sequence[Gpu]) -> str:
    """Return the claim's name of one GPU; slices of one (MIG), which few drivers list, stand for themselves."""
    if name.upper().startswith("MIG-"):
        return f"gpu-{name}"
    found = [gpu for gpu in gpus if _is_named(gpu, name) and not gpu.lost]
    if len(found) != 1:
        raise CheckError("run/no-such-gpu", name=name, here=len(gpus))
    return _claim_name(found[0])


def mark_claimed(machine: MachineReport, claims: Claims) -> MachineReport:
    """Return the machine with the GPUs that other runs have claimed, which may hold no memory there yet."""
    marked = tuple(_marked(gpu, claims.find_holder(_claim_name(gpu))) for gpu in machine.gpus)
    return machine if marked == machine.gpus else replace(machine, gpus=marked)


def claim_planned(machine: MachineReport, planned: Collection[int], claims: Claims) -> MachineReport | None:
    """Claim the GPUs of a plan, by the driver's numbers; return the machine as it is now where another was faster."""
    for gpu in machine.gpus:
        holder = claims.take(_claim_name(gpu)) if gpu.physical in planned else None
        if holder is not None:
            claims.release("gpu-")
            gpus = tuple(_marked(one, holder) if one == gpu else one for one in machine.gpus)
            return replace(machine, gpus=gpus)
    return None


def _marked(gpu: Gpu, holder: dict[str, Any] | None) -> Gpu:
    return gpu if holder is None else replace(gpu, claim=_name_holder(holder))


def _claim_name(gpu: Gpu) -> str:
    return f"gpu-{gpu.uuid or gpu.physical}"


def _name_holder(holder: dict[str, Any]) -> str:
    return f"{holder.get('user', 'n/a')}, pid {holder.get('pid', 'n/a')}, {holder.get('run', 'n/a')}"
