"""Where a run is, whatever framework trains it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Progress:
    """Where a run is. Together with the tensors this is all a resumed run needs."""

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
    older_bests: list[int] = field(default_factory=list)
    """Steps that were the best before, newest first: what is kept when the best one could not be saved."""
    stale: int = 0
    """Validations in a row without a better result."""
    guard_events: int = 0
    owes_validation: bool = False
    """The step is to be validated and has not been."""
    owes_trial: bool = False
    """The step is to be tried out and has not been."""


def read_progress(meta: Mapping[str, Any]) -> Progress:
    """Return the progress a checkpoint's own JSON holds; Any: it is as free as JSON."""
    stored = {"owes_validation": meta.get("is_validation_owed", False), **meta["progress"]}
    return Progress(**{**stored, "skips": [tuple(pair) for pair in stored["skips"]]})
