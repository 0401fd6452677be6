"""The forms in which the originals keep weights: torch files, `checkpoint-N` folders, MindSpore's `.ckpt`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headway.checkpoint import export_ckpt, export_folder, export_pt, export_safetensors, read_manifest
from headway.errors import CheckpointError
from headway.guide.checkpoints import NOTE, Made
from headway.telemetry import write_json


class TorchWriter:
    """`.pt` and `.pth`: a dict that torch.load reads with weights_only; one process with torch serves all of them."""

    def __init__(
        self,
        describe: Callable[[Made, Mapping[str, Any]], dict[str, Any]],
        *,
        parts: Mapping[str, str],
        has_sidecar: bool = False,
    ) -> None:
        """Take how a file is described, and which weights go where.

        Args:
            describe: what is beside the weights, from the file's own facts and what the recipe left for exports.
            parts: name of each dict of weights in the file, to the prefix of the tensors that go there without it.
            has_sidecar: whether the facts are also in a `.json` beside the file.
        """
        self._describe, self._parts, self._has_sidecar = describe, dict(parts), has_sidecar
        self._child: subprocess.Popen[str] | None = None

    def write(self, checkpoint: Path, out: Path, made: Made) -> None:
        """Write one checkpoint's weights, and a note of where they came from inside the file."""
        kept = read_manifest(checkpoint).meta.get("export")
        meta = self._describe(made, kept if isinstance(kept, dict) else {})
        notes = {NOTE: {"run": made.run.name, "step": made.step}}
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=".export-") as place:
            weights = Path(place) / "weights.safetensors"
            export_safetensors(checkpoint, weights)
            request = {"weights": str(weights), "meta": meta, "parts": self._parts, "notes": notes, "out": str(out)}
            why = self._ask(request)
        if why:
            raise CheckpointError("checkpoint/export-failed", path=out, why=why)
        if self._has_sidecar:
            run = os.path.relpath(made.run.root, out.parent)
            write_json(out.with_suffix(".json"), {**made.note(), "run": run})

    def _ask(self, request: Mapping[str, Any]) -> str:
        if self._child is None:
            # A session of its own: Ctrl-C goes to the whole terminal, and the last file is written after it.
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", "headway.checkpoint.write_pt"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        child = self._child
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(f"{json.dumps(request)}\n")
            child.stdin.flush()
            answer = child.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise CheckpointError("checkpoint/export-child", path=request["out"], code=child.wait(), why="n/a")
        return str(json.loads(answer)["error"])

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.communicate()
            self._child = None


class FolderWriter:
    """`checkpoint-N` with the weights, their average below `ema/` and config.json."""

    def write(self, checkpoint: Path, out: Path, made: Made) -> None:
        """Write one folder."""
        if out.exists():
            return  # the same step of the same run, written before
        export_folder(checkpoint, out.parent, measures=made.measures)

    def close(self) -> None:
        """Nothing was started."""


class CkptWriter:
    """MindSpore's `.ckpt`."""

    def write(self, checkpoint: Path, out: Path, made: Made) -> None:
        """Replace the file."""
        fresh = out.with_name(f".new-{out.name}")
        fresh.unlink(missing_ok=True)
        export_ckpt(checkpoint, fresh)
        os.replace(fresh, out)

    def close(self) -> None:
        """Nothing was started."""


class StepWriter:
    """nanochat's `model_000200.pt` with `meta_000200.json` beside it."""

    def write(self, checkpoint: Path, out: Path, made: Made) -> None:
        """Write the pair."""
        if not out.exists():
            out.with_name(f"meta_{made.step:06d}.json").unlink(missing_ok=True)  # of a writer that was killed between
            export_pt(checkpoint, out.parent, measures=made.measures)

    def close(self) -> None:
        """Nothing was started."""
