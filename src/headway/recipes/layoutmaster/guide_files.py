"""The guide's checkpoints: `checkpoint_epoch_N.pth` and `best_model.pth`, each with a note of where it came from.

The `.pth` holds the weights; what a run needs to go on (optimizer, data order, random numbers) stays in the run
directory, and `checkpoint_epoch_N.json` beside the file says which run and step that is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.checkpoint import export_safetensors, read_manifest
from headway.errors import CheckpointError, UsageError
from headway.telemetry import write_json

BEST = "best_model.pth"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a `.pth` came from."""

    run: str
    """Folder of the run."""
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a file says about the run beside its weights."""

    epoch: int
    """Epochs that are over, from 1."""
    best_loss: float | None
    """Lowest validation loss so far, as the original keeps it."""
    measures: Mapping[str, float]
    """What the validation of its step found; empty where there was none."""


def epoch_file(epoch: int) -> str:
    """Return the guide's name for the checkpoint after so many epochs."""
    return f"checkpoint_epoch_{epoch}.pth"


def find_source(path: Path) -> Source:
    """Return the run and step of a guide's checkpoint, or refuse with those that are there."""
    if not path.is_file():
        known = ", ".join(sorted(file.name for file in path.parent.glob("[!.]*.pth"))) or "n/a"
        raise UsageError("layoutmaster/guide-no-checkpoint", path=path, known=known)
    note = path.with_suffix(".json")
    try:
        values = json.loads(note.read_text(encoding="utf-8"))
        return Source(run=os.path.normpath(path.parent / values["run"]), step=int(values["step"]))
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise UsageError("layoutmaster/guide-no-note", path=path, note=note.name) from err


class Exporter:
    """Writes checkpoints of a run as the guide names them; one process with torch serves all of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._child: subprocess.Popen[str] | None = None

    def write(self, checkpoint: Path, name: str, made: Made) -> Path:
        """Write one checkpoint's weights and the note beside them; return the file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        manifest = read_manifest(checkpoint)
        kept = manifest.meta.get("export")
        told: dict[str, Any] = {**kept} if isinstance(kept, dict) else {}
        # The original counts epochs from 0 inside the file and from 1 in its name.
        told |= {"epoch": made.epoch - 1, "global_step": manifest.step, "best_loss": made.best_loss}
        told |= {"mean_iou": made.measures.get("mean_iou")}
        out = self._folder / name
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=".export-") as place:
            weights = Path(place) / "weights.safetensors"
            export_safetensors(checkpoint, weights)
            why = self._ask({"weights": str(weights), "meta": told, "out": str(out)})
        if why:
            raise CheckpointError("checkpoint/export-failed", path=out, why=why)
        # Relative, so that a project that is moved keeps its way back to the run.
        run = os.path.relpath(checkpoint.parent.parent, self._folder)
        note = {"run": run, "step": manifest.step, "epoch": made.epoch, "measures": dict(made.measures)}
        write_json(out.with_suffix(".json"), note)
        return out

    def _ask(self, request: dict[str, Any]) -> str:
        if self._child is None:
            line = [sys.executable, "-P", "-m", "headway.recipes.layoutmaster.pth"]
            self._child = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        child = self._child
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(f"{json.dumps(request)}\n")
        child.stdin.flush()
        answer = child.stdout.readline()
        if not answer:
            raise CheckpointError("checkpoint/export-child", path=request["out"], code=child.wait(), why="n/a")
        return str(json.loads(answer))

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.communicate()
            self._child = None
