"""The guide's checkpoints: `checkpoint_epoch_N.pt`, `checkpoint_step_N.pt` and `best_model.pt`.

A `.pt` holds the trained weights; what a run needs to go on (optimizer, data order, random numbers) stays in the run
directory. A note inside the file says which run and step that is: a `.pt` is a zip, so nobody has to unpickle it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.checkpoint import export_safetensors, read_manifest
from headway.errors import CheckpointError, UsageError
from headway.telemetry import RunDir, is_run

NOTE = "archive/headway.json"
"""Below the folder that torch gives its own records; it reads no archive with a file outside of it."""
BEST = "best_model.pt"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a `.pt` came from."""

    run: RunDir
    step: int


def epoch_file(epoch: int) -> str:
    """Return the guide's name for the checkpoint at the end of an epoch; the first is 0, as in the original."""
    return f"checkpoint_epoch_{epoch}.pt"


def step_file(step: int) -> str:
    """Return the original's name for a checkpoint within an epoch."""
    return f"checkpoint_step_{step}.pt"


def find_source(path: Path, out: Path) -> Source:
    """Return the run and step of a guide's checkpoint, or refuse with those that are there."""
    if not path.is_file():
        known = ", ".join(sorted(file.name for file in path.parent.glob("[!.]*.pt"))) or "n/a"
        raise UsageError("atlas/guide-no-checkpoint", path=path, known=known)
    note = read_note(path)
    if note is None:
        raise UsageError("atlas/guide-foreign", path=path)
    run = RunDir(out.absolute() / str(note["run"]))
    if not is_run(run.root):
        raise UsageError("atlas/guide-run-gone", path=path, run=run.root)
    return Source(run, int(note["step"]))


def read_note(path: Path) -> dict[str, Any] | None:
    """Return what a file says of itself; none where it was not made here."""
    try:
        with zipfile.ZipFile(path) as archive:
            note = json.loads(archive.read(NOTE))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return None
    return note if isinstance(note, dict) and {"run", "step"} <= note.keys() else None


class Exporter:
    """Writes checkpoints of a run as the guide names them; one process with torch serves all of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # A session of its own: Ctrl-C goes to the whole terminal, and the last file is written after it.
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "headway.recipes.atlas.pt"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def count(self, section: Mapping[str, Any]) -> tuple[int, int]:
        """Return all parameters of a model, and those that train."""
        found = self._ask({"count": dict(section)})
        return found["total"], found["trained"]

    def write(self, checkpoint: Path, name: str, *, epoch: int, best_loss: float | None) -> Path:
        """Write one checkpoint's weights; return the file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        step = read_manifest(checkpoint).step
        out = self._folder / name
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=".export-") as place:
            weights = Path(place) / "weights.safetensors"
            export_safetensors(checkpoint, weights)
            meta = {"epoch": epoch, "global_step": step, "best_val_loss": best_loss}
            note = {"run": checkpoint.parent.parent.name, "step": step}
            why = self._ask({"weights": str(weights), "meta": meta, "note": note, "out": str(out)})["error"]
        if why:
            raise CheckpointError("checkpoint/export-failed", path=out, why=why)
        return out

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        child = self._child
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(f"{json.dumps(request)}\n")
            child.stdin.flush()
            answer = child.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            where = request.get("out", self._folder)
            raise CheckpointError("checkpoint/export-child", path=where, code=child.wait(), why="n/a")
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """End the process."""
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()
