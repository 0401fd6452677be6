"""Published weights as a start: any file that `headway ckpt import` reads; no pickle is run."""

from __future__ import annotations

from pathlib import Path

import torch

from headway.errors import CheckError
from headway.recipes.rdt.model import RdtRunner
from headway.task import open_weights, read_weights

_TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}


def load_pretrained(model: RdtRunner, path: Path) -> None:
    """Fill every trained parameter from a file, or from the one in a folder; a misfit is refused."""
    if not path.exists():
        raise CheckError("rdt/no-pretrained", file=path)
    held = read_weights(path)
    wanted = {name: param for name, param in model.named_parameters() if param.requires_grad}
    missing = sorted(wanted.keys() - held.spans.keys())
    if missing:
        raise CheckError("rdt/pretrained-misfit", file=held.path, what=f"{missing[0]} (+{len(missing) - 1})")
    for name, param in wanted.items():
        span = held.spans[name]
        if span.shape != tuple(param.shape) or span.dtype not in _TYPES:
            what = f"{name} {span.dtype} {span.shape} ≠ {tuple(param.shape)}"
            raise CheckError("rdt/pretrained-misfit", file=held.path, what=what)
    with open_weights(held) as fill, torch.no_grad():
        for name, param in wanted.items():
            span = held.spans[name]
            fill(name, memoryview(data := bytearray(span.end - span.start)))
            values = torch.frombuffer(data, dtype=_TYPES[span.dtype])
            param.copy_(values.reshape(span.shape))
