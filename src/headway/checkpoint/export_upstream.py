"""Weights out of a checkpoint as the system a recipe comes from keeps them: names, shapes and the rest of the file."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headway.ask import ask
from headway.checkpoint.disk import RealDisk, write_file
from headway.checkpoint.export import (
    Export,
    Select,
    describe_export,
    encode_meta,
    export_pt,
    export_safetensors,
    plan_export,
    refuse_existing,
)
from headway.checkpoint.verify import read_manifest
from headway.errors import CheckpointError
from headway.weights import Theirs, Upstream, read_weights

_CONFIG: Final = "config.json"


def export_upstream(
    path: Path,
    out: Path,
    *,
    upstream: Upstream,
    select: Select = "model",
    measures: Mapping[str, float] | None = None,
    dry_run: bool = False,
) -> Export:
    """Write one of their files into a folder; torch runs in a process of its own."""
    if not upstream.file:
        return (
            plan_export(path, out, select=select, form="pt")
            if dry_run
            else export_pt(path, out, select=select, measures=measures)
        )
    planned = plan_export(path, out, select=select, form="safetensors")
    files = (out / upstream.file, *((out / _CONFIG,) if upstream.file.endswith(".bin") else ()))
    refuse_existing(files)
    if dry_run:
        return Export(source=path, step=planned.step, files=files, num_tensors=planned.num_tensors, bytes=planned.bytes)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out, prefix=".export-") as place:
            weights, made = Path(place) / "weights.safetensors", Path(place) / upstream.file
            export_safetensors(path, weights, select=select)
            told = describe_export(read_manifest(path), measures or {})
            num, size = write_for_upstream(weights, made, upstream, told)
            if len(files) > 1:
                meta = encode_meta(read_manifest(path), measures or {})
                write_file(RealDisk(), files[1], [memoryview(meta)])
            os.replace(made, files[0])
    except OSError as err:
        raise CheckpointError("checkpoint/export-failed", path=out, why=err.strerror or str(err)) from err
    return Export(source=path, step=planned.step, files=files, num_tensors=num, bytes=size)


def write_for_upstream(weights: Path, made: Path, upstream: Upstream, described: Mapping[str, Any]) -> tuple[int, int]:
    """Let a process with torch write the file; return its tensors and their bytes. Any: JSON."""
    held = read_weights(weights)
    found = {name: upstream.rename(name, span.shape) for name, span in held.spans.items()}
    theirs = {name: at for name, at in found.items() if at is not None}
    names = [name for at in theirs.values() for name in (at.name, *at.copies)]
    request = {
        "weights": str(weights),
        "out": str(made),
        "rename": {name: _entry(at) for name, at in theirs.items()},
        "zeros": {name: list(entry) for name, entry in upstream.extras(names).items()},
        "part": upstream.part,
        "meta": dict(upstream.facts(described, names)) if upstream.part else {},
    }
    told = ask(sys.executable, request, module="headway.checkpoint.write_pt")
    if told.value != {"error": ""}:
        why = told.value["error"] if told.value else told.why
        raise CheckpointError("checkpoint/export-child", path=made.name, code=told.exit_code, why=why)
    return len(theirs), sum(held.spans[name].end - held.spans[name].start for name in theirs)


def _entry(at: Theirs) -> dict[str, Any]:
    return {"names": [at.name, *at.copies], "shape": None if at.shape is None else list(at.shape)}
