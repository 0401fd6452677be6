"""GPUs for a foreign line: free ones, claimed so that another user's run does not take them a second later."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from headway.errors import CheckError, UsageError
from headway.launch import Claims
from headway.machine import FirstOf, Gpu, GpuDriver, NvmlDriver, SmiDriver, describe_holders, is_free
from headway.messages import say

_POLL_S: Final = 5.0
_TELL_S: Final = 60.0


def read_gpus(driver: GpuDriver | None = None) -> tuple[Gpu, ...]:
    """Return the GPUs of this machine, in the driver's order."""
    reading = (driver or FirstOf((NvmlDriver(), SmiDriver()))).read()
    return () if reading is None else reading.gpus


def choose_devices(wanted: str, claims: Claims, driver: GpuDriver | None = None) -> tuple[str, ...]:
    """Return what `--gpus` names: `0,1` and UUIDs as they are, a number as that many free ones."""
    if not wanted.isdigit():
        names = tuple(name.strip() for name in wanted.split(",") if name.strip())
        for name in names:
            if not name.isdigit() and not name.upper().startswith(("GPU-", "MIG-")):
                raise UsageError("run/bad-gpus", value=name)
        return _claim_named(names, read_gpus(driver), claims)
    gpus = _visible(read_gpus(driver))
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
    driver: GpuDriver | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[str, ...]:
    """Wait until that many GPUs are free, saying once a minute who holds the others."""
    told = -_TELL_S
    while True:
        gpus = _visible(read_gpus(driver))
        if len(gpus) < number:
            raise CheckError("run/too-few-gpus", wanted=number, here=len(gpus))
        found, holders = _claim_free(number, gpus, claims)
        if found is not None:
            return found
        if time.monotonic() - told >= _TELL_S:
            told = time.monotonic()
            tell(say("run/waiting", wanted=number, holders=holders))
        sleep(_POLL_S)


def _visible(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Leave out what the environment has hidden already: a container's or a scheduler's share is not exceeded."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return gpus
    names = [name.strip() for name in named.split(",") if name.strip()]
    return tuple(gpu for name in names for gpu in gpus if _is_named(gpu, name))


def _is_named(gpu: Gpu, name: str) -> bool:
    """Say whether an index or a UUID, which may be shortened as CUDA allows it, means this GPU."""
    if name.isdigit():
        return gpu.index == int(name)
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
            held.append(f"{gpu.index}: {describe_holders(gpu)}")
            continue
        holder = claims.take(_claim_name(gpu))
        if holder is None:
            taken.append(str(gpu.index))
        else:
            held.append(f"{gpu.index}: {_name_holder(holder)}")
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


def _claim_name(gpu: Gpu) -> str:
    return f"gpu-{gpu.uuid or gpu.physical}"


def _name_holder(holder: dict[str, Any]) -> str:
    return f"{holder.get('user', 'n/a')}, pid {holder.get('pid', 'n/a')}, {holder.get('run', 'n/a')}"
