"""A run that nobody needs any more: its directory is deleted whole."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from headway.errors import UsageError
from headway.telemetry.rundir import RunDir
from headway.telemetry.state import is_supervised


def refuse_removal(run: RunDir) -> None:
    """Refuse to delete a run that is supervised, or a folder that only looks like a run."""
    if run.root.is_symlink():
        raise UsageError("telemetry/remove-link", path=run.root, target=os.readlink(run.root))
    if not ((run.root / "ranks").is_dir() and run.checkpoints.is_dir()):
        raise UsageError("telemetry/remove-not-a-run", path=run.root)
    if is_supervised(run):
        raise UsageError("telemetry/remove-live", run=run.name)


def count_bytes(run: RunDir) -> int:
    """Return what the files of a run hold; a file that goes meanwhile counts nothing."""
    total = 0
    for folder, _, names in os.walk(run.root):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(Path(folder, name)).st_size
    return total


def remove_run(run: RunDir) -> None:
    """Delete a run's directory; where that fails, what is left keeps its name.

    Raises:
        UsageError: somebody supervises the run, or the file system refuses.
    """
    refuse_removal(run)
    gone = run.root.with_name(f"{run.name}.removed")
    try:
        # Moved first, so that nobody resumes half a run by its name; whoever took it before the move is seen after it.
        # The new name is not hidden: where this process is killed, `headway runs` still shows what takes the room.
        run.root.rename(gone)
        if is_supervised(RunDir(gone)):
            gone.rename(run.root)
            raise UsageError("telemetry/remove-live", run=run.name)
        shutil.rmtree(gone)
    except OSError as error:
        if gone.exists() and not run.root.exists():
            gone.rename(run.root)
        raise UsageError("telemetry/remove-failed", path=run.root, why=error.strerror or str(error)) from error
