"""GPUs for a foreign line: free ones, claimed so that another user's run does not take them a second later."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from headway.errors import CheckError, UsageError
from headway.launch import Claims
from headway.machine import FirstOf, Gpu, NvmlDriver, SmiDriver, describe_holders, is_free
from headway.messages import say

_POLL_S: Final = 5.0
_TELL_S: Final = 60.0


def read_gpus() -> tuple[Gpu, ...]:
    """Return the GPUs of this machine, in the driver's order."""
    reading = FirstOf((NvmlDriver(), SmiDriver())).read()
    return () if reading is None else reading.gpus


def choose_devices(wanted: str, claims: Claims) -> tuple[str, ...]:
    """Return what `--gpus` names: `0,1` and UUIDs as they are, a number as that many free ones."""
    if not wanted.isdigit():
        names = tuple(name.strip() for name in wanted.split(",") if name.strip())
        for name in names:
            if not name.isdigit() and not name.upper().startswith(("GPU-", "MIG-")):
                raise UsageError("run/bad-gpus", value=name)
        return _claim_named(names, read_gpus(), claims)
    found, holders = _claim_free(int(wanted), read_gpus(), claims)
    if found is None:
        raise CheckError("run/too-few-free", wanted=wanted, holders=holders)
    return found


def wait_for_devices(number: int, claims: Claims, tell: Callable[[str], None]) -> tuple[str, ...]:
    """Wait until that many GPUs are free, saying once a minute who holds the others."""
    told = -_TELL_S
    while True:
        gpus = read_gpus()
        if len(gpus) < number:
            raise CheckError("run/too-few-gpus", wanted=number, here=len(gpus))
        found, holders = _claim_free(number, gpus, claims)
        if found is not None:
            return found
        if time.monotonic() - told >= _TELL_S:
            told = time.monotonic()
            tell(say("run/waiting", wanted=number, holders=holders))
        time.sleep(_POLL_S)


def _claim_free(number: int, gpus: Sequence[Gpu], claims: Claims) -> tuple[tuple[str, ...] | None, str]:
    """Claim that many free GPUs, or none of them; return also who holds the others."""
    taken: list[str] = []
    held: list[str] = []
    for gpu in gpus:
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
        return tuple(taken), ""
    claims.release("gpu-")
    return None, "; ".join(held) or "n/a"


def _claim_named(names: tuple[str, ...], gpus: Sequence[Gpu], claims: Claims) -> tuple[str, ...]:
    for name in names:
        gpu = next((gpu for gpu in gpus if name in (str(gpu.index), gpu.uuid)), None)
        if gpu is None:
            raise CheckError("run/no-such-gpu", name=name, here=len(gpus))
        holder = claims.take(_claim_name(gpu))
        if holder is not None:
            raise CheckError("run/gpu-claimed", name=name, holder=_name_holder(holder))
    return names


def _claim_name(gpu: Gpu) -> str:
    return f"gpu-{gpu.uuid or gpu.physical}"


def _name_holder(holder: dict[str, Any]) -> str:
    return f"{holder.get('user', 'n/a')}, pid {holder.get('pid', 'n/a')}, {holder.get('run', 'n/a')}"
