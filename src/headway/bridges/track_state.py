"""How far a tracker has come, and how it knows the run: kept in the run directory, so that a resume continues there."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from headway.telemetry import RunDir, read_record, whole, words, write_json

FOLDER: Final = "bridges"


@dataclass(slots=True, kw_only=True)
class TrackState:
    """What one tracker has."""

    id: str | None = None
    """The tracker's own name of the run."""
    step: int = 0
    """The last step whose numbers it was given."""
    validation: int = -1
    """The last step whose validation it was given."""


def read_state(run: RunDir, name: str) -> TrackState:
    """Return what a tracker has; nothing yet: zeros."""
    found = read_record(run.root / FOLDER / f"{name}.json")
    validation = whole(found.get("validation"))
    return TrackState(
        id=words(found.get("id")),
        step=whole(found.get("step")) or 0,
        validation=-1 if validation is None else validation,
    )


def write_state(run: RunDir, name: str, state: TrackState) -> None:
    """Keep it."""
    (run.root / FOLDER).mkdir(exist_ok=True)
    write_json(run.root / FOLDER / f"{name}.json", asdict(state))
