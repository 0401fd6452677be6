"""How GPUs are joined, and what that means for a run over several of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from headway.machine.record import Finding

_FAST = ("NV", "HCCS", "XGMI", "SIO")
_SLOW = ("SYS", "NODE", "PHB", "SOC")
"""Over the processor or its interconnect."""


def judge_links(counts: Mapping[str, int]) -> Iterator[Finding]:
    """Yield slow or uneven links, from how many pairs have each kind."""
    fast = {kind: num for kind, num in counts.items() if kind.startswith(_FAST)}
    slow = {kind: num for kind, num in counts.items() if kind in _SLOW}
    total = sum(counts.values())
    if not total:
        return
    listed = ", ".join(f"{num} × {kind}" for kind, num in counts.items())
    if not fast and slow:
        facts = {"kind": max(slow, key=lambda kind: _SLOW[::-1].index(kind)), "pairs": str(total), "list": listed}
        yield Finding(code="machine/links-slow", level="warn", facts=facts)
    elif not fast:
        yield Finding(code="machine/links-pcie", level="note", facts={"pairs": str(total), "list": listed})
    elif len(counts) > 1:
        yield Finding(code="machine/links-uneven", level="note", facts={"pairs": str(total), "list": listed})


def judge_p2p(pairs: Mapping[str, bool]) -> Iterator[Finding]:
    """Yield pairs of GPUs that cannot read each other's memory."""
    closed = [pair for pair, is_open in pairs.items() if not is_open]
    if closed:
        facts = {"num": str(len(closed)), "pairs": str(len(pairs)), "list": ", ".join(closed[:6])}
        yield Finding(code="machine/p2p-closed", level="note", facts=facts)


def judge_nvlinks(active: Mapping[str, int], inactive: Mapping[str, int]) -> Iterator[Finding]:
    """Yield GPUs whose NVLinks are down, or fewer than their neighbours have."""
    most = Counter(active.values()).most_common(1)[0][0] if active else 0
    for gpu, num in active.items():
        down = inactive.get(gpu, 0)
        if num == 0 or down:
            facts = {"gpu": gpu, "up": str(num), "down": str(down) if down else "n/a"}
            yield Finding(code="machine/nvlink-down", level="warn", facts=facts)
        elif num < most:
            facts = {"gpu": gpu, "up": str(num), "down": str(most - num)}
            yield Finding(code="machine/nvlink-down", level="warn", facts=facts)
