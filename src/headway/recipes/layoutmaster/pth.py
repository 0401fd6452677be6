"""Weights as the original's `.pth`. A program: the guide's commands start it, nothing imports it.

Reads requests, one JSON object a line: {"weights": a safetensors file, "meta": what stands beside them, "out": file}.
Answers each with one line, so that one start of torch serves a whole run.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor


def write_pth(weights: Path, meta: dict[str, Any], out: Path) -> None:
    """Write a dict that torch.load reads with weights_only: the network, the image side, numbers beside them."""
    tensors = load_file(weights)
    temp = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with temp.open("xb") as file:
            torch.save(
                {
                    **meta,
                    "model_state_dict": _part(tensors, "layout."),
                    # The original leaves them out, and a restart sees other random features than were trained on.
                    "visual_state_dict": _part(tensors, "visual."),
                },
                file,
            )
            file.flush()
            os.fsync(file.fileno())
        os.replace(temp, out)
    finally:
        temp.unlink(missing_ok=True)


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def main() -> int:
    """Answer requests until there are no more."""
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            write_pth(Path(asked["weights"]), asked["meta"], Path(asked["out"]))
            said = ""
        except OSError as err:
            said = str(err)
        sys.stdout.write(f"{json.dumps(said)}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
