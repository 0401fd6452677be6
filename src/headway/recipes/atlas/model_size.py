"""How many parameters a model of Atlas has. Asked for in a process of its own: building the model needs torch."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from headway.recipes.atlas.section import AtlasSection


def start_count(section: AtlasSection) -> Callable[[], tuple[int, int] | None]:
    """Begin to count; return how to get all parameters of a model and those that train: none where it failed."""
    command = [sys.executable, "-P", "-m", "headway.recipes.atlas.model_size", section.model_dump_json()]
    # A session of its own: Ctrl-C during the count is not for it.
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def answer() -> tuple[int, int] | None:
        said = child.communicate()[0]
        if child.returncode:
            return None
        total, trained = json.loads(said)
        return total, trained

    return answer


def _count(section: AtlasSection) -> tuple[int, int]:
    """Count them; an encoder on the disk is counted from its files' headers."""
    import torch

    from headway.recipes.atlas.encoders import build_atlas
    from headway.recipes.atlas.find import find_language

    with torch.device("meta"):
        model = build_atlas(section)
    trained = sum(param.numel() for param in model.parameters() if param.requires_grad)
    total = sum(param.numel() for param in model.parameters())
    folder = find_language(section).path
    if folder is not None:
        total += _count_folder(folder) - sum(param.numel() for param in model.language.parameters())
    return total, trained


def _count_folder(folder: Path) -> int:
    from safetensors import safe_open

    total = 0
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(str(file), framework="pt") as opened:
            total += sum(math.prod(opened.get_slice(name).get_shape()) for name in opened.keys())  # noqa: SIM118
    return total


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_count(AtlasSection.model_validate_json(sys.argv[1]))))
