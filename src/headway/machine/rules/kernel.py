"""What the kernel log says: error codes of the GPU driver and processes ended for lack of memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headway.machine.record import Finding, Level
from headway.units import size

_XIDS: dict[str, tuple[Level, tuple[int, ...]]] = {
    "machine/gpu-fallen": ("warn", (79,)),
    "machine/xid-gsp": ("warn", (61, 62, 119, 120)),
    "machine/xid-remap": ("warn", (63,)),
    "machine/xid-remap-failed": ("warn", (64,)),
    "machine/xid-memory": ("warn", (48, 92, 94, 95, 140, 171, 172)),
    "machine/xid-link": ("warn", (74, 121, 144, 145, 146, 147, 148, 149, 150)),
    "machine/xid-program": ("note", (6, 8, 13, 31, 32, 43, 45, 68, 69)),
}
"""What a code of the driver asks for. Codes of a faulty program are not the fault of the machine."""


def judge_xids(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield one finding for each GPU and code of the log. Any: facts of `parse_xids`."""
    counted: dict[tuple[str, int], int] = {}
    for one in facts.get("xids", ()):
        key = (one["pci"], one["xid"])
        counted[key] = counted.get(key, 0) + one["count"]
    seen = set()
    for (pci, xid), num in counted.items():
        code = next((code for code, (_, codes) in _XIDS.items() if xid in codes), "machine/xid-other")
        level = _XIDS[code][0] if code in _XIDS else "warn"
        seen.add(pci.lower())
        yield Finding(code=code, level=level, facts={"bus": pci, "xid": str(xid), "num": str(num)})
    for bus in facts.get("fallen", ()):
        if bus.lower().rpartition(".")[0] not in seen and bus.lower() not in seen:
            yield Finding(code="machine/gpu-fallen", level="warn", facts={"bus": bus, "xid": "79", "num": "1"})
    for bus in facts.get("init_failed", ()):
        yield Finding(code="machine/gpu-init-failed", level="warn", facts={"bus": bus})
    if facts.get("none_initialised"):
        yield Finding(code="machine/no-devices", level="warn", facts={})
    for sxid in facts.get("sxids", ()):
        yield Finding(code="machine/sxid", level="warn", facts={"sxid": str(sxid)})


def judge_oom(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the processes the kernel has ended. Any: facts of `parse_oom`."""
    code = "machine/oom-group" if facts.get("scope") == "cgroup" else "machine/oom-killed"
    for one in facts.get("killed", ()):
        rss = one.get("anon_rss_kb")
        held = size(rss * 1024 if rss is not None else None)
        yield Finding(code=code, level="warn", facts={"pid": str(one["pid"]), "name": one["name"], "held": held})
    if facts.get("invoked_by") and not facts.get("killed"):
        yield Finding(code="machine/oom-unnamed", level="warn", facts={"name": facts["invoked_by"]})
    if facts.get("swap_total_kb") and facts.get("swap_free_kb") == 0:
        yield Finding(code="machine/swap-full", level="note", facts={"total": size(facts["swap_total_kb"] * 1024)})
