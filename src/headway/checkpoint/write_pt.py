"""Weights from safetensors to a torch file. A program: the control side starts it, nothing imports it.

Reads requests, one JSON object a line, and answers each with one, so that one start of torch serves a whole run:

    {"weights": a safetensors file, "out": the file}                        all tensors by name
    {…, "parts": {"model_state_dict": ""}, "meta": {…}, "notes": {…}}       in dicts by prefix, facts beside them
    {…, "part": "model_state_dict", "rename": {name: {"names": […], "shape": […]}}, "zeros": {name: [type, shape]}}
                                                                            under other people's names, in one dict
    -> {"error": "" or why not}
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from headway.checkpoint.torch_types import DTYPES


def load_weights(weights: Path) -> dict[str, Tensor]:
    """Return the tensors of a file; tied weights are under every name they have, and share their memory."""
    tensors: dict[str, Tensor] = load_file(weights)
    with safe_open(weights, "pt") as source:
        about = {key: value for key, value in (source.metadata() or {}).items() if key not in ("format", "step")}
    tensors.update({alias: tensors[name] for alias, name in about.items()})
    return tensors


def write_pt(request: dict[str, Any]) -> None:
    """Write a dict that torch.load reads with weights_only, whole or not at all. Any: JSON."""
    tensors, out = load_weights(Path(request["weights"])), Path(request["out"])
    held: dict[str, Any] = {**request.get("meta", {})}
    if "rename" in request:
        tensors = _rename(tensors, request["rename"], request["zeros"])
        if request["part"]:
            held[request["part"]] = tensors
    for name, prefix in request.get("parts", {}).items():
        held[name] = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
    temp = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with temp.open("xb") as file:
            torch.save(held if "parts" in request or request.get("part") else tensors, file)
        with zipfile.ZipFile(temp, "a") as archive:
            for name, note in request.get("notes", {}).items():
                archive.writestr(name, json.dumps(note))
        with temp.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temp, out)
    finally:
        temp.unlink(missing_ok=True)


def _rename(tensors: dict[str, Tensor], names: dict[str, Any], zeros: dict[str, Any]) -> dict[str, Tensor]:
    """Return the tensors that have another name, under it and in its shape, and the zeros. Any: JSON."""
    found: dict[str, Tensor] = {}
    for name, at in names.items():
        value = tensors[name] if at["shape"] is None else tensors[name].reshape(at["shape"])
        found.update(dict.fromkeys(at["names"], value))
    types = {name: dtype for dtype, name in DTYPES.items()}
    return {**found, **{name: torch.zeros(shape, dtype=types[kind]) for name, (kind, shape) in zeros.items()}}


def main() -> int:
    """Answer requests until there are no more."""
    for line in sys.stdin:
        try:
            write_pt(json.loads(line))
            said = ""
        except OSError as err:
            said = str(err)
        sys.stdout.write(f"{json.dumps({'error': said})}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
