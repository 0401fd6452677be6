"""Weights from safetensors to a torch file. A program: the control side starts it, nothing imports it."""

from __future__ import annotations

import os
import sys

import torch
from safetensors import safe_open
from safetensors.torch import load_file


def main(argv: list[str]) -> int:
    """Write the tensors of a safetensors file as a plain dict that torch.load reads with weights_only."""
    weights, model = argv
    tensors = load_file(weights)
    with safe_open(weights, "pt") as source:
        about = {key: value for key, value in (source.metadata() or {}).items() if key not in ("format", "step")}
    # Tied weights stand under every name they have, and share their memory again when they are loaded.
    tensors.update({alias: tensors[name] for alias, name in about.items()})
    with open(model, "xb") as file:
        torch.save(tensors, file)
        file.flush()
        os.fsync(file.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
