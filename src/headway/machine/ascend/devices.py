"""Ascend devices: read by npu-smi, judged by what it says of their health."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence

from headway.machine.record import Finding, Npu
from headway.machine.text import Facts, parse_npu
from headway.units import size

_MIB = 1 << 20
_DEADLINE_S = 10.0
_HOT_C = 85
_HELD_SHARE = 0.15
"""An idle 910B keeps about 4 of 64 GiB for its own system."""


def read_npus() -> tuple[str | None, tuple[Npu, ...], str | None]:
    """Return (version, devices, what went wrong); nothing of it when there is no npu-smi here."""
    program = shutil.which("npu-smi")
    if program is None:
        return None, (), None
    try:
        done = subprocess.run(
            [program, "info"],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, (), f"npu-smi gave no answer within {_DEADLINE_S:.0f} s"
    except OSError as err:
        return None, (), f"npu-smi: {err.strerror or err}"
    facts = parse_npu(done.stdout)
    if facts is None:
        said = " ".join((done.stdout + done.stderr).split())
        return None, (), said[:300] or f"npu-smi: exit code {done.returncode}"
    return facts["npu_smi"], npus_from(facts), None


def npus_from(facts: Facts) -> tuple[Npu, ...]:
    """Return the devices of a table of npu-smi."""
    return tuple(_npu(one) for one in facts["npus"])


def _npu(one: Facts) -> Npu:
    total, used = one.get("hbm_total_mb", one.get("memory_total_mb")), one.get("hbm_used_mb", one.get("memory_used_mb"))
    util, temp = one.get("aicore_pct"), one.get("temp_c")
    return Npu(
        index=one["npu"],
        name=one.get("name"),
        health=one.get("health"),
        total_bytes=None if total is None else total * _MIB,
        used_bytes=None if used is None else used * _MIB,
        utilisation=util if isinstance(util, int) else None,
        temperature_c=temp if isinstance(temp, int) else None,
        bus_id=one.get("bus_id"),
    )


def judge_npus(npus: Sequence[Npu]) -> Iterator[Finding]:
    """Yield devices that are not well, hot or in use."""
    for npu in npus:
        about = {"npu": str(npu.index), "name": npu.name or "n/a"}
        if npu.health is not None and npu.health.upper() != "OK":
            yield Finding(code="machine/npu-unwell", level="warn", facts={**about, "health": npu.health})
        if npu.temperature_c is not None and npu.temperature_c >= _HOT_C:
            yield Finding(code="machine/npu-hot", level="warn", facts={**about, "temp": str(npu.temperature_c)})
        if npu.total_bytes and npu.used_bytes is not None and npu.used_bytes > _HELD_SHARE * npu.total_bytes:
            facts = {**about, "used": size(npu.used_bytes), "total": size(npu.total_bytes)}
            yield Finding(code="machine/npu-busy", level="warn", facts=facts)
