"""Published weights as a start: safetensors with the published names, never a pickle."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from headway.errors import CheckError
from headway.recipes.rdt.model import RdtRunner


def load_pretrained(model: RdtRunner, path: Path) -> None:
    """Fill every trained parameter from a file or from a folder's model.safetensors; a misfit is refused."""
    file = path / "model.safetensors" if path.is_dir() else path
    if file.suffix != ".safetensors" or not file.is_file():
        raise CheckError("rdt/no-pretrained", file=file)
    wanted = {name: param for name, param in model.named_parameters() if param.requires_grad}
    try:
        with safe_open(str(file), framework="pt") as held, torch.no_grad():
            names = set(held.keys())
            missing = sorted(wanted.keys() - names)
            if missing:
                raise CheckError("rdt/pretrained-misfit", file=file, what=f"{missing[0]} (+{len(missing) - 1})")
            for name, param in wanted.items():
                shape = tuple(held.get_slice(name).get_shape())
                if shape != tuple(param.shape):
                    raise CheckError("rdt/pretrained-misfit", file=file, what=f"{name} {shape} ≠ {tuple(param.shape)}")
                param.copy_(held.get_tensor(name))
    except (OSError, SafetensorError) as err:
        raise CheckError("rdt/bad-file", file=file, why=err) from err
