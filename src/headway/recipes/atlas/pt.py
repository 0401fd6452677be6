"""Weights as the original's `.pt`, and the model's size. A program: the guide's commands start it, nothing imports it.

Reads requests, one JSON object a line, and answers each with one, so that one start of torch serves a whole run:

    {"count": a task section}                                      -> {"total": …, "trained": …}
    {"weights": a safetensors file, "meta": …, "note": …, "out": the file}   -> {"error": "" or why not}
"""

from __future__ import annotations

import json
import math
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file

from headway.recipes.atlas.encoders import build_atlas
from headway.recipes.atlas.find import find_language
from headway.recipes.atlas.guide_files import NOTE
from headway.recipes.atlas.section import AtlasSection


def write_pt(weights: Path, meta: dict[str, Any], note: dict[str, Any], out: Path) -> None:
    """Write a dict that torch.load reads with weights_only, and a note of where it came from that needs no torch."""
    temp = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with temp.open("xb") as file:
            torch.save({**meta, "model_state_dict": load_file(weights)}, file)
        with zipfile.ZipFile(temp, "a") as archive:
            archive.writestr(NOTE, json.dumps(note))
        with temp.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temp, out)
    finally:
        temp.unlink(missing_ok=True)


def count_params(section: AtlasSection) -> dict[str, int]:
    """Return all parameters and those that train; an encoder on the disk is counted from its files' headers."""
    with torch.device("meta"):
        model = build_atlas(section)
    trained = sum(param.numel() for param in model.parameters() if param.requires_grad)
    total = sum(param.numel() for param in model.parameters())
    folder = find_language(section).path
    if folder is not None:
        total += _count_folder(folder) - sum(param.numel() for param in model.language.parameters())
    return {"total": total, "trained": trained}


def _count_folder(folder: Path) -> int:
    total = 0
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(str(file), framework="pt") as opened:
            total += sum(math.prod(opened.get_slice(name).get_shape()) for name in opened.keys())  # noqa: SIM118
    return total


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """Answer one request."""
    if "count" in asked:
        return count_params(AtlasSection.model_validate(asked["count"]))
    try:
        write_pt(Path(asked["weights"]), asked["meta"], asked["note"], Path(asked["out"]))
    except OSError as err:
        return {"error": str(err)}
    return {"error": ""}


def main() -> int:
    """Answer requests until there are no more."""
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(answer(json.loads(line)))}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
