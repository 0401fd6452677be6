"""Weights from safetensors to a torch file. A program: the control side starts it, nothing imports it."""

from __future__ import annotations

import os
import sys

import torch
from safetensors.torch import load_file


def main(argv: list[str]) -> int:
    """Write the tensors of a safetensors file as a plain dict that torch.load reads with weights_only."""
    weights, model = argv
    with open(model, "xb") as file:
        torch.save(load_file(weights), file)
        file.flush()
        os.fsync(file.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
