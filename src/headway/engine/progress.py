"""Where a run stands, whatever framework trains it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Progress:
    """Where a run stands. Together with the tensors this is all a resumed run needs."""

    step: int = 0
    """Optimizer steps finished."""
    position: int = 0
    """Samples all ranks have taken together: the place in the data order."""
    updates: int = 0
    """Optimizer updates made; fewer than steps when some were skipped."""
    ledger: int = 0
    """Fingerprint of the samples taken, over all ranks."""
    skips: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of positions that are left out after a roll-back."""
    best_value: float | None = None
    best_step: int | None = None
    stale: int = 0
    """Validations in a row without a better result."""
    guard_events: int = 0
