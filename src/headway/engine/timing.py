"""What probes of every framework share: a limit on memory, and what a handful of times says."""

from __future__ import annotations

import resource
import statistics
from collections.abc import Sequence
from pathlib import Path

from headway.telemetry import MetricsWriter, read_metrics

_PARTS = ("data", "forward", "backward", "comm", "optimizer")


def limit_memory(limit_bytes: int | None) -> None:
    """Let an allocation fail in this process before the kernel has to choose whom to kill.

    Data segments are limited and not the address space: libraries map far more than they touch.
    """
    if limit_bytes is not None:
        held = int(next(line for line in _status() if line.startswith("VmData:")).split()[1]) * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (held + limit_bytes, resource.RLIM_INFINITY))


def _status() -> list[str]:
    return Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()


def split_steps(metrics: MetricsWriter, steps: Sequence[int]) -> dict[str, float]:
    """Return how those steps split, from their own lines."""
    metrics.flush()
    found = read_metrics(metrics.path)
    rows = [row for row, step in enumerate(found["step"]) if step in set(steps)]
    return {name: statistics.median(found[name][row] for row in rows) for name in _PARTS} if rows else {}


def typical(times: Sequence[float]) -> float:
    """Return the lower quarter: what disturbs a step only ever makes it longer."""
    return sorted(times)[len(times) // 4]


def spread(times: Sequence[float]) -> float:
    """Return how far the quarters of the times lie apart, as a share of the median."""
    if len(times) < 4:
        return 0.0
    low, _, high = statistics.quantiles(times, n=4)
    return (high - low) / statistics.median(times)
