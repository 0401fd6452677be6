"""From what a person types to a run directory."""

from __future__ import annotations

from pathlib import Path

from headway.errors import UsageError
from headway.telemetry.rundir import RunDir


def list_runs(out: Path) -> list[RunDir]:
    """Return the runs of a folder, newest first; names begin with their time."""
    try:
        places = [place for place in out.iterdir() if is_run(place)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [RunDir(place) for place in sorted(places, key=_began, reverse=True)]


def _began(place: Path) -> tuple[str, str, str]:
    """Return what runs are sorted by: the second in their name, its fraction, and last what they are called."""
    second, _, rest = place.name.partition("_")
    return second, rest.rpartition("_")[2], place.name


def is_run(place: Path) -> bool:
    """Say whether a folder is a run directory."""
    return (place / "events.jsonl").is_file() or (place / "ranks").is_dir()


def find_run(given: str | None, out: Path) -> RunDir:
    """Return the run somebody means: a path, a name, a part of a name that fits only one, or the newest."""
    if given is not None and is_run(Path(given)):
        return RunDir(Path(given).resolve())
    runs = list_runs(out)
    if given is None:
        if not runs:
            raise UsageError("telemetry/no-runs", out=out)
        return runs[0]
    same = [run for run in runs if run.name == given]
    fits = same or [run for run in runs if given in run.name]
    if not fits:
        raise UsageError("telemetry/no-run", given=given, out=out, num=len(runs))
    if len(fits) > 1:
        names = ", ".join(run.name for run in fits[:5])
        raise UsageError("telemetry/many-runs", given=given, num=len(fits), names=names, first=fits[0].name)
    return fits[0]
