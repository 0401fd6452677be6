"""The same tiny step under other trainers, for loop_overhead.py; each is left out when it is not installed."""

from __future__ import annotations

from collections.abc import Callable


def find(batch: int) -> dict[str, Callable[[int], None]]:
    """Return the peers that are installed."""
    return {}
