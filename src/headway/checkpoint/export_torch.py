"""Weights from safetensors to a torch file. A program: the control side starts it, nothing imports it."""

from __future__ import annotations

import json
import os
import sys

import torch
from safetensors.torch import load_file


def main(argv: list[str]) -> int:
    """Write the tensors of a safetensors file as a plain dict that torch.load reads with weights_only."""
    weights, model, tied = argv
    state = load_file(weights)
    # Under both names it is one tensor again, as in the model, and written once.
    state.update({name: state[first] for name, first in json.loads(tied).items() if first in state})
    with open(model, "xb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
