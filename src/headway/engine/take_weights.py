"""Begin a run with weights from a file: build its state, put them in, and save that as step 0.

Asked by the command line, by module name (`headway/ask.py`). One process on the CPU is enough for every layout:
a checkpoint is made of global tensors.
"""

from __future__ import annotations

import difflib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from headway.checkpoint.torch_types import DTYPES
from headway.engine.rank import prepare
from headway.engine.rank_state import Run
from headway.engine.reporter import Reporter
from headway.engine.request import answer_request
from headway.engine.snapshot import find_aliases, save, wait_for_save
from headway.errors import CheckpointError
from headway.planner import Plan
from headway.task import find_recipe
from headway.telemetry import RunDir, read_json
from headway.weights import Upstream, Weights, adopt_names, open_weights, read_weights

_TYPES = {name: dtype for dtype, name in DTYPES.items()}


def main() -> None:
    """Answer one request."""
    answer_request(_answer)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    place, file = RunDir(Path(request["run_dir"])), Path(request["file"])
    stored = Plan.from_json(read_json(place.job)["plan"])
    plan = replace(stored, device="cpu", backend="gloo", strategy="single", world_size=1, precision="fp32")
    with tempfile.TemporaryFile() as told:
        job = {"run_dir": str(place.root), "rank": 0, "local_rank": 0, "world_size": 1, "attempt": 0}
        run = prepare(job, Reporter(os.dup(told.fileno())), plan)
        weights = read_weights(file)
        num, kept = fill(run, weights, find_recipe(read_json(place.job)["recipe"]).upstream)
        save(run, is_needed=True)
        wait_for_save(run)
        return {"step": 0, "tensors": num, "bytes": weights.bytes, "skipped": [], "kept": kept, "events": _told(told)}


def fill(run: Run, weights: Weights, upstream: Upstream | None = None) -> tuple[int, list[str]]:
    """Put weights, and their average where the run keeps one, into a run.

    Returns:
        how many tensors were read, and the names of those that such a file does not hold: they stay as they are.
    """
    trained = {name: param.detach() for name, param in run.model.named_parameters() if param.requires_grad}
    kept = run.model.state_dict().keys()
    buffers = {name: value for name, value in run.model.named_buffers() if name in kept}
    aliases = find_aliases(run.model)
    wanted = {**trained, **buffers}
    adopted = adopt_names(weights, {name: tuple(value.shape) for name, value in wanted.items()}, upstream)
    kept = sorted(adopted.kept)
    read = {name: value for name, value in wanted.items() if name not in adopted.kept}
    num = copy_weights(adopted.weights, read, aliases)
    if run.ema is None:
        return num, kept
    average = run.ema.state()
    if weights.average is not None:
        # Buffers have no average; the file holds them once more, as they are.
        return num + copy_weights(weights.average, average, {**aliases, **{name: name for name in buffers}}), kept
    for name, value in average.items():
        value.copy_(trained[name])
    return num, kept


def copy_weights(weights: Weights, wanted: Mapping[str, Tensor], aliases: Mapping[str, str] | None = None) -> int:
    """Fill every tensor from the file; what is missing, left over or of another shape is refused before any is."""
    aliases = aliases or {}
    # Tied weights may be in the file under their other name alone.
    other = {**weights.aliases, **{name: alias for alias, name in aliases.items() if alias in weights.spans}}
    source = {name: name if name in weights.spans else other.get(name, "") for name in wanted}
    if missing := sorted(name for name, found in source.items() if not found):
        raise CheckpointError("checkpoint/import-missing", **_odd(weights, missing, weights.spans))
    if extra := sorted(weights.spans.keys() - wanted.keys() - aliases.keys()):
        raise CheckpointError("checkpoint/import-extra", **_odd(weights, extra, wanted))
    for name, tensor in wanted.items():
        _check(weights, source[name], tensor)
    with open_weights(weights) as read, torch.no_grad():
        for name, tensor in wanted.items():
            _fill(tensor, weights, source[name], read)
    return len(wanted)


def _check(weights: Weights, name: str, tensor: Tensor) -> None:
    span = weights.spans[name]
    dtype = _TYPES[span.dtype]
    is_same_kind = dtype == tensor.dtype or (dtype.is_floating_point and tensor.dtype.is_floating_point)
    if tuple(tensor.shape) != span.shape or not is_same_kind:
        have, want = f"{span.dtype} {list(span.shape)}", f"{DTYPES[tensor.dtype]} {list(tensor.shape)}"
        raise CheckpointError("checkpoint/import-shape", path=weights.path, name=name, have=have, want=want)


def _fill(tensor: Tensor, weights: Weights, name: str, read: Any) -> None:  # Any: the function of open_weights
    dtype = _TYPES[weights.spans[name].dtype]
    is_direct = dtype == tensor.dtype and tensor.is_contiguous()
    target = tensor if is_direct else torch.empty(tuple(tensor.shape), dtype=dtype)
    read(name, memoryview(target.reshape(-1).view(torch.uint8).numpy()))
    if not is_direct:
        tensor.copy_(target)


def _odd(weights: Weights, names: list[str], others: Iterable[str]) -> dict[str, object]:
    near = difflib.get_close_matches(names[0], list(others), n=1, cutoff=0.0)
    return {"path": weights.path, "name": names[0], "num": len(names), "near": near[0] if near else "n/a"}


def _told(file: IO[bytes]) -> list[dict[str, Any]]:
    file.seek(0)
    return [json.loads(line)["event"] for line in file]


if __name__ == "__main__":
    main()
