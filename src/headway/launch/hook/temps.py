"""Temporary folders that killed processes could not remove themselves."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

_PREFIX: Final = "pymp-"
_OWN: Final = ("listener-", "pym-")
"""What multiprocessing itself puts there; anything else is the user's and stays."""


def remove_temps(run_root: Path) -> None:
    """Remove the folders that the processes of a run have noted; call it when all of them are gone."""
    noted = run_root / "ranks" / "temps"
    try:
        places = noted.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    for place in dict.fromkeys(places):
        with contextlib.suppress(OSError):
            _remove(Path(place))
    with contextlib.suppress(OSError):
        noted.unlink()


def _remove(folder: Path) -> None:
    facts = folder.lstat()
    if not folder.name.startswith(_PREFIX) or not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        return
    for path in folder.iterdir():
        if path.name.startswith(_OWN):
            path.unlink()
    folder.rmdir()
