"""What a run's job says about alerts and trackers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.config import AlertConfig, TrackConfig
from headway.telemetry import RunDir, read_record, section


@dataclass(frozen=True, slots=True)
class Settings:
    """Both sections, checked."""

    alert: AlertConfig
    track: TrackConfig

    @property
    def trackers(self) -> tuple[str, ...]:
        """Names of trackers."""
        return (self.track.to,) if isinstance(self.track.to, str) else self.track.to


def read_settings(run: RunDir) -> Settings:
    """Return the sections of a run: of its config, or beside its launch line."""
    job = read_record(run.job)
    own = section(job.get("config")) or section(job.get("beside"))
    return Settings(_checked(AlertConfig, own.get("alert")), _checked(TrackConfig, own.get("track")))


def _checked(model: Any, found: Any) -> Any:
    """Return a section; where the file is damaged, its defaults. Any: a section's class, and what a file holds."""
    try:
        return model.model_validate(section(found))
    except ValueError:
        return model()
