"""From what a person types to a run directory."""

from __future__ import annotations

import glob
import os
import pwd
import re
import time
from pathlib import Path
from typing import Final

from headway.errors import UsageError
from headway.telemetry.reading import read_part
from headway.telemetry.rundir import RunDir

_NAME: Final = re.compile(r"\d{8}-\d{6}_")
_FIRST_T: Final = re.compile(rb'\{"seq":\d{1,9},"t":(\d{1,12}(?:\.\d{1,12})?),')
_HEAD_BYTES: Final = 256


def list_runs(out: Path) -> list[RunDir]:
    """Return the runs of a folder that may be read, newest first."""
    try:
        places = [place for place in out.iterdir() if is_run(place)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [RunDir(place) for place in sorted(places, key=_began, reverse=True)]


def list_closed(out: Path) -> list[str]:
    """Return the names of runs of a folder that belong to somebody else and may not be read."""
    try:
        return sorted(place.name for place in out.iterdir() if _NAME.match(place.name) and _is_closed(place))
    except OSError:
        return []


def _began(place: Path) -> tuple[float, str]:
    """Return what runs are sorted by: the instant of their first event, and last what they are called.

    The second in a name is local time, and two users of one folder need not share a time zone; it only stands in for
    a run that has written no event yet.
    """
    found = _FIRST_T.match(read_part(place / "events.jsonl", 0, _HEAD_BYTES))
    return (float(found[1]), place.name) if found else (_named_instant(place.name), place.name)


def _named_instant(name: str) -> float:
    second, _, rest = name.partition("_")
    try:
        instant = time.mktime(time.strptime(second, "%Y%m%d-%H%M%S"))
        return instant + int(rest.rpartition("_")[2], 16) / 0x10000
    except (ValueError, OverflowError):
        return 0.0


def is_run(place: Path) -> bool:
    """Say whether a folder is a run directory that may be read."""
    try:
        is_there = (place / "events.jsonl").is_file() or (place / "ranks").is_dir()
    except (OSError, ValueError):  # the second: a name that no file can have
        return False
    return is_there and not _is_closed(place)


def _is_closed(place: Path) -> bool:
    """Say whether it is a folder that we may not look into, or whose history we may not read."""
    try:
        if not place.is_dir():
            return False
        if not os.access(place, os.R_OK | os.X_OK):
            return True
        history = place / "events.jsonl"
        return history.is_file() and not os.access(history, os.R_OK)
    except (OSError, ValueError):
        return False


def find_run(given: str | None, out: Path) -> RunDir:
    """Return the run somebody means: a path, a name, a part of a name that fits only one, or the newest."""
    if given is not None and is_run(Path(given)):
        return RunDir(Path(given).resolve())
    for place in (Path(given), out / given) if given else (out,):
        if _is_closed(place):
            raise UsageError("telemetry/closed", path=place, owner=_owner(place))
    runs = list_runs(out)
    if given is None:
        if not runs and (closed := list_closed(out)):
            raise UsageError("telemetry/closed", path=out / closed[-1], owner=_owner(out / closed[-1]))
        if not runs:
            raise UsageError("telemetry/no-runs", out=out)
        return runs[0]
    same = [run for run in runs if run.name == given]
    fits = same or [run for run in runs if given in run.name] or _beside(given)
    if not fits and (closed := [name for name in list_closed(out) if given in name]):
        raise UsageError("telemetry/closed", path=out / closed[-1], owner=_owner(out / closed[-1]))
    if not fits:
        raise UsageError("telemetry/no-run", given=given, out=out, num=len(runs))
    if len(fits) > 1:
        names = ", ".join(run.name for run in fits[:5])
        raise UsageError("telemetry/many-runs", given=given, num=len(fits), names=names, first=fits[0].name)
    return fits[0]


def _beside(name: str) -> list[RunDir]:
    """Return a run by its full name from another folder here: hints name runs so, whatever `out` was set to."""
    if not _NAME.match(name) or "/" in name:
        return []
    return [RunDir(place.resolve()) for place in sorted(Path().glob(f"*/{glob.escape(name)}")) if is_run(place)]


def _owner(place: Path) -> str:
    try:
        return pwd.getpwuid(place.stat().st_uid).pw_name
    except (OSError, KeyError):
        return "n/a"
